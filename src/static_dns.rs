//! Host names in a statically linked binary.

/// Restricts host name lookup to `/etc/hosts` and DNS.
///
/// glibc loads a module for each further service in `/etc/nsswitch.conf` (mDNS, LDAP). A static
/// binary must not: the module loads the system's own glibc, and two versions in one process crash.
#[cfg(static_libc)]
#[expect(unsafe_code, reason = "glibc offers no other way")]
pub(crate) fn use_hosts_and_dns_only() {
    use std::ffi::{c_char, c_int};

    unsafe extern "C" {
        fn __nss_configure_lookup(database: *const c_char, services: *const c_char) -> c_int;
    }
    // SAFETY: both strings are terminated and static, and no other thread exists yet. The only
    // failure is a lack of memory.
    unsafe { __nss_configure_lookup(c"hosts".as_ptr(), c"files dns".as_ptr()) };
}

/// A dynamically linked binary uses every service that the system has.
#[cfg(not(static_libc))]
pub(crate) fn use_hosts_and_dns_only() {}
