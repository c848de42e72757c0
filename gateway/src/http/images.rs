//! Images and nodes over HTTP.

use std::sync::Arc;

use axum::extract::{Path, State};
use gateway_api::{
    Page, Problem,
    image::{ChangeImage, Changes, CollectImages, CollectedImages, Image, SaveInstance},
    node::{Gpu, Node},
    packages::Recipe,
};
use http::StatusCode;

use super::{
    body::{Ask, Json},
    caller::Caller,
};
use crate::{app::App, error::Error};

#[utoipa::path(get, path = "/images", operation_id = "list_images", responses(
    (status = 200, body = Page<Image>, description = "also while the engine is away: the platform's are those that it had"),
    (status = 401, body = Problem),
))]
pub(super) async fn images(State(app): State<Arc<App>>, caller: Caller) -> Result<Json<Page<Image>>, Error> {
    Ok(Json(Page { items: app.images(&caller).await? }))
}

#[utoipa::path(get, path = "/nodes", operation_id = "list_nodes", responses(
    (status = 200, body = Page<Node>),
    (status = 401, body = Problem),
))]
pub(super) async fn nodes(State(app): State<Arc<App>>, caller: Caller) -> Json<Page<Node>> {
    Json(Page { items: app.nodes(&caller) })
}

#[utoipa::path(get, path = "/gpus", operation_id = "list_gpus", responses(
    (status = 200, body = Page<Gpu>, description = "who has which graphics processor, and how busy each is"),
    (status = 401, body = Problem),
))]
pub(super) async fn gpus(State(app): State<Arc<App>>, caller: Caller) -> Result<Json<Page<Gpu>>, Error> {
    Ok(Json(Page { items: app.gpus(&caller).await? }))
}

#[utoipa::path(post, path = "/instances/{name}/save", operation_id = "save_instance", params(
    ("name" = String, Path, description = "name, slug or id"),
), request_body = SaveInstance, responses(
    (status = 202, body = Image, description = "the instance goes on; the image's `state` tells how far it is"),
    (status = 400, body = Problem),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 404, body = Problem),
    (status = 409, body = Problem, description = "`wrong_state`, `already_exists`, `being_saved`"),
    (status = 422, body = Problem, description = "`bad_image`, `bad_value`"),
    (status = 503, body = Problem, description = "`no_registry`"),
))]
pub(super) async fn save(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
    Json(wanted): Json<SaveInstance>,
) -> Result<(StatusCode, Json<Image>), Error> {
    Ok((StatusCode::ACCEPTED, Json(app.save_instance(&caller, &name, wanted).await?)))
}

#[utoipa::path(get, path = "/instances/{name}/changes", operation_id = "instance_changes", params(
    ("name" = String, Path, description = "name, slug or id"),
    ("exclude" = Option<Vec<String>>, Query, description = "a path that a save would leave out, once for each; an empty one for a save that leaves nothing out"),
), responses(
    (status = 200, body = Changes, description = "what a save would put into an image"),
    (status = 400, body = Problem),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 404, body = Problem),
    (status = 409, body = Problem, description = "`wrong_state`"),
    (status = 422, body = Problem, description = "`bad_value`"),
    (status = 502, body = Problem, description = "`cannot_save`"),
    (status = 503, body = Problem, description = "`cluster_unreachable`"),
))]
pub(super) async fn changes(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
    Ask(asked): Ask<Vec<(String, String)>>,
) -> Result<Json<Changes>, Error> {
    Ok(Json(app.changes(&caller, &name, excluded(asked)).await?))
}

/// The paths that a query leaves out; `None` where it says nothing of them.
fn excluded(asked: Vec<(String, String)>) -> Option<Vec<String>> {
    let paths: Vec<_> =
        asked.into_iter().filter_map(|(key, path)| (key == "exclude").then_some(path)).collect();
    (!paths.is_empty()).then(|| paths.into_iter().filter(|path| !path.is_empty()).collect())
}

#[utoipa::path(get, path = "/images/{image}", operation_id = "show_image", params(
    ("image" = String, Path, description = "id, `NAME:TAG` of one's own, `USER/NAME:TAG`, or the reference"),
), responses(
    (status = 200, body = Image),
    (status = 401, body = Problem),
    (status = 404, body = Problem),
))]
pub(super) async fn show(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(image): Path<String>,
) -> Result<Json<Image>, Error> {
    Ok(Json(app.image(&caller, &image).await?))
}

#[utoipa::path(get, path = "/images/{image}/dockerfile", operation_id = "image_dockerfile", params(
    ("image" = String, Path, description = "id, `NAME:TAG` of one's own, `USER/NAME:TAG`, or the reference"),
), responses(
    (status = 200, body = Recipe, description = "how an image like it could be made from its parent"),
    (status = 401, body = Problem),
    (status = 404, body = Problem),
    (status = 422, body = Problem, description = "`bad_value`: nobody knows what was installed in it"),
))]
pub(super) async fn dockerfile(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(image): Path<String>,
) -> Result<Json<Recipe>, Error> {
    Ok(Json(app.recipe(&caller, &image).await?))
}

#[utoipa::path(patch, path = "/images/{image}", operation_id = "change_image", params(
    ("image" = String, Path, description = "id, `NAME:TAG` of one's own, `USER/NAME:TAG`, or the reference"),
), request_body = ChangeImage, responses(
    (status = 200, body = Image),
    (status = 400, body = Problem),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 404, body = Problem),
    (status = 422, body = Problem),
))]
pub(super) async fn change(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(image): Path<String>,
    Json(wanted): Json<ChangeImage>,
) -> Result<Json<Image>, Error> {
    Ok(Json(app.change_image(&caller, &image, wanted).await?))
}

#[utoipa::path(post, path = "/images/collect", operation_id = "collect_images",
    request_body = CollectImages, responses(
    (status = 200, body = CollectedImages, description = "what has gone of what no image needs, or would go"),
    (status = 400, body = Problem),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 409, body = Problem, description = "`being_saved`: wait for it"),
    (status = 422, body = Problem),
    (status = 502, body = Problem, description = "the registry or the cluster does not answer"),
))]
pub(super) async fn collect(
    State(app): State<Arc<App>>,
    caller: Caller,
    Json(wanted): Json<CollectImages>,
) -> Result<Json<CollectedImages>, Error> {
    Ok(Json(app.collect_images(&caller, &wanted).await?))
}

#[utoipa::path(post, path = "/images/{image}/retry", operation_id = "retry_image", params(
    ("image" = String, Path, description = "id, `NAME:TAG` of one's own, `USER/NAME:TAG`, or the reference"),
), responses(
    (status = 202, body = Image, description = "it is being saved again, from what was made before it failed"),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 404, body = Problem),
    (status = 409, body = Problem, description = "`being_saved`, or `image_quota`"),
    (status = 422, body = Problem, description = "it has not failed"),
))]
pub(super) async fn retry(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(image): Path<String>,
) -> Result<(StatusCode, Json<Image>), Error> {
    Ok((StatusCode::ACCEPTED, Json(app.retry_image(&caller, &image).await?)))
}

#[utoipa::path(delete, path = "/images/{image}", operation_id = "delete_image", params(
    ("image" = String, Path, description = "id, `NAME:TAG` of one's own, `USER/NAME:TAG`, or the reference"),
), responses(
    (status = 202, body = Image, description = "it will be gone soon; one that is being saved is given up"),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 404, body = Problem),
    (status = 409, body = Problem, description = "`in_use`: instances or jobs are made from it"),
))]
pub(super) async fn delete(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(image): Path<String>,
) -> Result<(StatusCode, Json<Image>), Error> {
    Ok((StatusCode::ACCEPTED, Json(app.delete_image(&caller, &image).await?)))
}

#[cfg(test)]
mod tests {
    use axum::extract::Query;

    use super::*;

    #[test]
    fn a_query_leaves_out_what_it_names_nothing_or_the_usual() {
        let check = |query: &str, expected: Option<&[&str]>| {
            let uri = format!("/changes{query}").parse().unwrap();
            let Query(asked) = Query::<Vec<(String, String)>>::try_from_uri(&uri).unwrap();
            let expected = expected.map(|paths| paths.iter().map(ToString::to_string).collect());
            assert_eq!(excluded(asked), expected, "{query}");
        };
        check("", None);
        check("?other=/a", None);
        check("?exclude=", Some(&[]));
        check("?exclude=%2Fa%2Cb&exclude=/c", Some(&["/a,b", "/c"]));
    }
}
