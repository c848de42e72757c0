//! Tasks of jobs by every door, as instances are: SSH, apps, the terminal; and one that has ended.

use gateway_api::{Action, Instance, Status, app::OpenApp, job::SubmitJob};
use reqwest::{Method, header};
use tests::{IMAGE, LIMIT, Laptop, OrFail as _, Talk, World, http_client, wait_until};

/// Long enough that no instance could be called so.
const JOB: &str = "resnet50_imagenet_ablation";

/// Submits a job with a task that stays and one that ends at once.
async fn submit(world: &World) {
    let role = |name: &str, command: &str| {
        format!(
            r#"{{"name": "{name}", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 256, "gpuNumber": 0, "command": "{command}"}}"#
        )
    };
    let roles = [role("main", "python3 -m http.server 9000"), role("once", "true")].join(",");
    let file = format!(r#"{{"jobName": "{JOB}", "image": "{IMAGE}", "taskRoles": [{roles}]}}"#);
    world.client().submit_job(&SubmitJob::new(file)).await.or_fail("submit a job");
}

/// The task, once it is as it should be.
async fn task(world: &World, task: &str, is: impl Fn(&Status) -> bool) -> Instance {
    wait_until(&format!("`{task}` is as it should be"), LIMIT, async || {
        let instance = world.client().instance(&format!("{JOB}/{task}")).await.ok()?;
        is(&instance.status).then_some(instance)
    })
    .await
}

/// A browser that has come in to port 9000 of an instance.
struct Visitor<'a> {
    world: &'a World,
    host: String,
    cookie: String,
}

impl<'a> Visitor<'a> {
    async fn enter(world: &'a World, instance: &str) -> Self {
        let port = "9000".parse().or_fail("name a port");
        let opened = world.client().open_app(instance, port, &OpenApp::default()).await;
        let url = opened.or_fail("open an app").url;
        let (host, path) = url.trim_start_matches("http://").split_once('/').or_fail("read an address");
        let mut visitor = Self { world, host: host.to_owned(), cookie: String::new() };
        let answer = visitor.ask(Method::GET, &format!("/{path}"), "").await;
        let cookie = answer.headers()[header::SET_COOKIE].to_str().or_fail("read a cookie");
        cookie.split(';').next().unwrap_or_default().clone_into(&mut visitor.cookie);
        visitor
    }

    async fn ask(&self, method: Method, path: &str, body: &'static str) -> reqwest::Response {
        // The first answer leads on to an address that only a browser finds.
        let client = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
        let _for_tls = http_client();
        let request =
            client.build().or_fail("make a client").request(method, self.world.console().to_owned() + path);
        let request = request.header(header::HOST, &self.host).header(header::COOKIE, &self.cookie);
        let request = request.header(header::ORIGIN, format!("http://{}", self.host));
        request.header(header::ACCEPT, "text/html").body(body).send().await.or_fail("ask an app")
    }
}

#[tokio::test]
async fn a_task_has_every_door_that_an_instance_has() {
    let world = World::start().await;
    let laptop = Laptop::with_key(&world).await;
    submit(&world).await;
    let main = task(&world, "main/0", |status| matches!(status, Status::Running { .. })).await;
    // By its name, which is longer than one that can be chosen, and by its slug.
    for name in [main.name.as_str(), main.slug.as_str()] {
        assert_eq!(laptop.ssh(name, &["echo in"]).await.succeeded(), "in\n");
        assert_eq!(world.client().instance(name).await.or_fail("find a task by its name").id, main.id);
    }
    // And by the commands that stand before `ssh`.
    let named = format!("{JOB}/main/0");
    assert_eq!(world.berth(&["ssh", &named, "--", "echo in"]).await.succeeded(), "in\n");
    let file = laptop.path("notes").display().to_string();
    std::fs::write(&file, "mine").or_fail("write a file");
    world.berth(&["cp", &file, &format!("{named}:/tmp/notes")]).await.succeeded();
    world.berth(&["cp", &format!("{}:/tmp/notes", main.slug), &format!("{file}-back")]).await.succeeded();
    assert_eq!(std::fs::read_to_string(format!("{file}-back")).or_fail("read a file"), "mine");
    let config = laptop.path("config");
    std::fs::write(&config, world.berth(&["config-ssh", "--print"]).await.succeeded())
        .or_fail("write a configuration");
    let mut ssh = std::process::Command::new("ssh");
    ssh.arg("-F").arg(&config).args(["-o", "BatchMode=yes", &format!("{}.berth", main.slug), "echo in"]);
    assert_eq!(laptop.run(ssh, b"").await.succeeded(), "in\n");

    let page = world.berth(&["open", &named, "terminal", "--print"]).await.succeeded();
    assert!(page.starts_with(world.console()), "{page}");
    let visitor = Visitor::enter(&world, main.name.as_str()).await;
    wait_until("the app of the task answers", LIMIT, async || {
        let answer = visitor.ask(Method::GET, "/", "").await.text().await.or_fail("read a page");
        answer.contains("Directory listing").then_some(())
    })
    .await;
}

#[tokio::test]
async fn nobody_is_asked_to_start_a_task_that_has_ended() {
    let world = World::start().await;
    let laptop = Laptop::with_key(&world).await;
    submit(&world).await;
    let once = task(&world, "once/0", |status| *status == Status::Succeeded).await;
    assert!(!once.actions.contains(&Action::Start), "{once:?}");
    let (_, said) = laptop.ssh(once.slug.as_str(), &["true"]).await.ended(255);
    assert!(said.contains("has ended, and the files of this task were not kept"), "{said}");
    let mut talk = Talk::start(laptop.ssh_as(&format!("admin+{}", once.slug), &["-tt"]));
    assert_eq!(talk.ends().await, Some(255));
    assert!(!talk.shown().contains("[Y/n]"), "{}", talk.shown());

    let visitor = Visitor::enter(&world, once.slug.as_str()).await;
    let answer = visitor.ask(Method::GET, "/", "").await;
    assert_eq!(answer.status(), 503);
    let page = answer.text().await.or_fail("read a page");
    assert!(page.contains("command has ended") && page.contains("value=\"\""), "{page}");
    // Nor does it help to ask without the button.
    assert_eq!(visitor.ask(Method::POST, "/.berth/act", "act=start").await.status(), 202);
    assert_eq!(visitor.ask(Method::GET, "/", "").await.status(), 503);
}
