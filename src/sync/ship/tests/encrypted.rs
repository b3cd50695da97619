//! Encrypted remotes.

use super::*;
use crate::ship::key::Key;

fn reveals_text(machine: &Machine) -> bool {
    let words = b"event number";
    machine.objects().iter().any(|(path, bytes)| {
        memchr::memmem::find(bytes, words).is_some()
            || zstd::stream::decode_all(&bytes[32.min(bytes.len())..])
                .is_ok_and(|bytes| memchr::memmem::find(&bytes, words).is_some())
            || path.to_string_lossy().contains("number")
    })
}

#[test]
fn a_remote_reveals_nothing_without_its_key() {
    let mut machine = Machine::new();
    Key::generate().unwrap().save(&machine.paths.ship_key()).unwrap();
    machine.record(20);
    machine.ship().unwrap();
    machine.record(1);
    machine.ship().unwrap();
    assert!(!reveals_text(&machine));
    machine.check();

    let key = fs::read(machine.paths.ship_key()).unwrap();
    fs::remove_file(machine.paths.ship_key()).unwrap();
    let error = machine.restore("again", None, false).unwrap_err();
    assert!(matches!(error, Error::WrongKey { ours: None, .. }), "{error}");
    Key::generate().unwrap().save(&machine.paths.ship_key()).unwrap();
    let error = machine.restore("again", None, false).unwrap_err();
    assert!(matches!(error, Error::WrongKey { ours: Some(_), .. }), "{error}");
    let error = machine.ship().unwrap_err();
    assert!(matches!(error, Error::WrongKey { .. }), "{error}");
    fs::write(machine.paths.ship_key(), key).unwrap();
    machine.check();
}

#[test]
fn a_new_key_encrypts_earlier_objects_too() {
    let mut machine = Machine::new();
    machine.record(20);
    machine.ship().unwrap();
    machine.record(1);
    machine.ship().unwrap();
    assert!(reveals_text(&machine), "otherwise this test could not fail");
    Key::generate().unwrap().save(&machine.paths.ship_key()).unwrap();
    let error = machine.restore("again", None, false).unwrap_err();
    assert!(matches!(error, Error::NotEncrypted { .. }), "{error}");
    machine.ship().unwrap();
    assert!(!reveals_text(&machine));
    machine.check();
}

#[test]
fn part_names_depend_on_the_key() {
    let mut machine = Machine::new();
    machine.record(3);
    machine.ship().unwrap();
    let plain: Vec<PathBuf> = machine.objects().into_keys().collect();
    Key::generate().unwrap().save(&machine.paths.ship_key()).unwrap();
    machine.ship().unwrap();
    let is_part = |path: &&PathBuf| path.to_string_lossy().contains("/seg/");
    let encrypted = machine.objects();
    assert!(plain.iter().filter(is_part).all(|path| !encrypted.contains_key(path)));
}
