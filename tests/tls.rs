//! What goes over TLS: questions to a model, and copies to a bucket.

use claude_mem_tools::{s3::S3Server, tls::TlsDoor};

use crate::{
    model::{Session, answering, provider_at, run, titles},
    sandbox::Sandbox,
    ship::remembered,
};

/// Makes a program trust the certificate authority of our proxy, and no other.
fn believing() -> (String, String) {
    ("SSL_CERT_FILE".into(), TlsDoor::authority().to_str().unwrap().into())
}

#[test]
fn a_model_is_used_over_tls_with_a_trusted_certificate() {
    for name in ["anthropic", "openai"] {
        let server = answering("safely");
        let door = TlsDoor::before(&server.url()).unwrap();
        let sandbox = Sandbox::new();
        Session::worked(&sandbox, "one", 1);
        let mut variables = provider_at(name, door.url());

        let error = run(&sandbox, &["distill"], &variables).fails(1);
        assert!(error.contains("SSL_CERT_FILE"), "{error}");
        assert_eq!(server.requests().len(), 0, "a key was told to somebody who may be anybody");

        variables.push(believing());
        run(&sandbox, &["distill"], &variables).ok();
        assert_eq!(titles(&sandbox), ["safely work 1 of one"], "{name}");
    }
}

#[test]
fn a_bucket_is_used_over_tls_with_a_trusted_certificate() {
    let server = S3Server::start().unwrap();
    let mut variables = server.variables();
    let door = TlsDoor::before(&variables[0].1).unwrap();
    variables[0].1 = door.url();
    variables.push(("CLAUDE_MEM_SHIP_TO".into(), server.place("over-tls")));
    let sandbox = remembered();

    let error = run(&sandbox, &["ship"], &variables).fails(1);
    assert!(error.contains("certificate"), "{error}");

    variables.push(believing());
    run(&sandbox, &["ship"], &variables).ok();
    run(&sandbox, &["verify", "--remote"], &variables).ok();
}
