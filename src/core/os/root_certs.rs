//! Whom the system believes about who other machines are.

/// Whether it believes anybody: a bare container may not.
pub fn knows_authorities() -> bool {
    #[cfg(all(unix, not(target_vendor = "apple")))]
    return !rustls_native_certs::load_native_certs().certs.is_empty();
    #[cfg(not(all(unix, not(target_vendor = "apple"))))]
    true
}
