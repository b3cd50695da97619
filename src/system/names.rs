//! How the names of other machines become addresses.

/// Has names looked up in `/etc/hosts` and by DNS alone, to be said before the first connection.
///
/// The C library would load what `/etc/nsswitch.conf` names besides these. A binary that has the C library inside
/// must not: such a module brings the system's own along, and two of different versions end the process. Where the
/// binary is linked as usual, or is no business of that library, names are the system's affair.
pub(crate) fn look_up_names_plainly() {
    #[cfg(static_libc)]
    {
        static SAID: std::sync::Once = std::sync::Once::new();
        SAID.call_once(leave_modules_out);
    }
}

#[cfg(static_libc)]
#[expect(unsafe_code, reason = "nothing but the C library can be told")]
fn leave_modules_out() {
    use std::ffi::{c_char, c_int};

    unsafe extern "C" {
        fn __nss_configure_lookup(database: *const c_char, services: *const c_char) -> c_int;
    }
    // SAFETY: both are strings that end, are only read, and are there for ever. Nobody looks up names meanwhile,
    // because all who do call this first, and wait for it. It fails for want of memory alone.
    unsafe { __nss_configure_lookup(c"hosts".as_ptr(), c"files dns".as_ptr()) };
}
