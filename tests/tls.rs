//! TLS connections to a model and to a bucket.

use claude_mem_tools::{s3::S3Server, tls::TlsProxy};

use crate::{
    model::{Session, answering, provider_at, run, titles},
    sandbox::Sandbox,
    ship::remembered,
};

/// Makes a program trust the certificate authority of our proxy, and no other.
fn trusted_authority() -> (String, String) {
    ("SSL_CERT_FILE".into(), TlsProxy::authority().to_str().unwrap().into())
}

#[test]
fn a_model_is_used_over_tls_with_a_trusted_certificate() {
    for name in ["anthropic", "openai"] {
        let server = answering("safely");
        let proxy = TlsProxy::before(&server.url()).unwrap();
        let sandbox = Sandbox::new();
        Session::worked(&sandbox, "one", 1);
        let mut variables = provider_at(name, proxy.url());

        let error = run(&sandbox, &["distill"], &variables).fails(1);
        assert!(error.contains("SSL_CERT_FILE"), "{error}");
        assert_eq!(
            server.requests().len(),
            0,
            "no key is sent to a server without a trusted certificate"
        );

        variables.push(trusted_authority());
        run(&sandbox, &["distill"], &variables).ok();
        assert_eq!(titles(&sandbox), ["safely work 1 of one"], "{name}");
    }
}

#[test]
fn a_bucket_is_used_over_tls_with_a_trusted_certificate() {
    let server = S3Server::start().unwrap();
    let mut variables = server.variables();
    let proxy = TlsProxy::before(&variables[0].1).unwrap();
    variables[0].1 = proxy.url();
    variables.push(("CLAUDE_MEM_SHIP_TO".into(), server.place("over-tls")));
    let sandbox = remembered();

    let error = run(&sandbox, &["ship"], &variables).fails(1);
    assert!(error.contains("certificate"), "{error}");

    variables.push(trusted_authority());
    run(&sandbox, &["ship"], &variables).ok();
    run(&sandbox, &["verify", "--remote"], &variables).ok();
}
