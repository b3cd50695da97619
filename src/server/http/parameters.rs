//! Query parameters: rejects unknown ones, and suggests the nearest name.
//!
//! A misspelled filter must not be ignored, because the result would be wrong. The known parameters
//! come from the OpenAPI description, so that the two cannot differ.

use std::{collections::HashMap, sync::Arc};

use axum::{
    extract::{MatchedPath, Query, Request, State},
    http::Method,
    middleware::Next,
    response::{IntoResponse, Response},
};
use utoipa::openapi::{OpenApi, RefOr, path::ParameterIn};

use super::error::ApiError;
use claude_mem_core::failure::nearest;

/// Other spellings that routes accept, with the name in the description.
const ALIASES: [(&str, &str); 4] = [
    ("date_start", "dateStart"),
    ("date_from", "dateStart"),
    ("date_end", "dateEnd"),
    ("date_to", "dateEnd"),
];

/// The query parameters of each route.
#[derive(Debug)]
pub(super) struct KnownParameters(HashMap<(Method, String), Vec<String>>);

impl KnownParameters {
    pub(super) fn of(description: &OpenApi) -> Arc<Self> {
        let mut known = HashMap::new();
        for (path, item) in &description.paths.paths {
            let operations = [
                (Method::GET, &item.get),
                (Method::POST, &item.post),
                (Method::DELETE, &item.delete),
            ];
            for (method, operation) in operations {
                let Some(operation) = operation else { continue };
                let parameters = operation.parameters.iter().flatten();
                let names = parameters.filter_map(|parameter| match parameter {
                    RefOr::T(parameter) if parameter.parameter_in == ParameterIn::Query => {
                        Some(parameter.name.clone())
                    }
                    _ => None,
                });
                known.insert((method, path.clone()), names.collect());
            }
        }
        Arc::new(Self(known))
    }

    fn check(&self, path: &str, request: &Request) -> Result<(), ApiError> {
        if request.uri().query().is_none_or(str::is_empty) {
            return Ok(());
        }
        let method = if request.method() == Method::HEAD { &Method::GET } else { request.method() };
        let known = self.0.get(&(method.clone(), path.to_owned())).map_or(&[][..], Vec::as_slice);
        // The route itself rejects an invalid query, and names the reason.
        let given = Query::<Vec<(String, String)>>::try_from_uri(request.uri());
        let given = given.map_or_else(|_| Vec::new(), |Query(given)| given);
        match given.iter().find(|(name, _)| !is_known(known, name)) {
            Some((name, _)) => Err(unknown(known, name)),
            None => Ok(()),
        }
    }
}

fn is_known(known: &[String], name: &str) -> bool {
    let has = |name: &str| known.iter().any(|other| other == name);
    has(name) || ALIASES.iter().any(|(alias, meant)| *alias == name && has(meant))
}

fn unknown(known: &[String], name: &str) -> ApiError {
    let name: String = name.chars().take(60).collect();
    let refusal = ApiError::bad(format!("there is no parameter `{name}`"));
    let names = known.iter().map(String::as_str);
    match nearest(&name, names) {
        Some(meant) => refusal.remedy(format!("did you mean `{meant}`?")),
        None if known.is_empty() => refusal.remedy("this route has no parameters"),
        None => refusal.remedy(format!("the parameters are `{}`", known.join("`, `"))),
    }
}

/// Rejects requests with unknown parameters.
pub(super) async fn known_only(
    State(known): State<Arc<KnownParameters>>,
    path: MatchedPath,
    request: Request,
    next: Next,
) -> Response {
    match known.check(path.as_str(), &request) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}
