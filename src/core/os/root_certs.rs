//! The system's root certificates.

/// Whether the system has root certificates. A minimal container may have none.
pub fn has_root_certificates() -> bool {
    #[cfg(all(unix, not(target_vendor = "apple")))]
    return !rustls_native_certs::load_native_certs().certs.is_empty();
    #[cfg(not(all(unix, not(target_vendor = "apple"))))]
    true
}
