//! The pages that the gateway itself shows at an app's address: what keeps the app from being shown, and what to do.
//!
//! One template, filled with text that is escaped. A [`View`] is what a page says, in the visitor's language; the page
//! asks for it again and again, and opens the app by itself when there is nothing more to say.

use std::fmt::Write as _;

use bytes::Bytes;
use gateway_api::{
    AppName, Status,
    app::{self, AppState},
    instance::{HeldUp, WaitReason},
    job::QueuePlace,
    preparing::PreparingStep,
    words::Language,
};
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use serde::Serialize;

use crate::error::Error;

const TEMPLATE: &str = include_str!("pages/page.html");

/// What a page says.
#[derive(Debug, Clone, Serialize)]
pub(super) struct View {
    #[serde(skip)]
    pub(super) code: StatusCode,
    /// There is nothing to say: the app can be shown.
    pub(super) ready: bool,
    /// It changes by itself, soon.
    pub(super) moves: bool,
    pub(super) about: About,
    pub(super) title: String,
    pub(super) text: String,
    pub(super) hint: String,
    pub(super) steps: Vec<Step>,
    pub(super) act: Option<Act>,
    pub(super) log: String,
    /// Where to go instead.
    #[serde(skip)]
    pub(super) link: Option<(String, &'static str)>,
    /// Whether to ask again.
    #[serde(skip)]
    pub(super) poll: bool,
    /// Where to go on to at once, unless the browser keeps nothing for this page.
    #[serde(skip)]
    pub(super) go_on: Option<String>,
}

/// The thing that a page waits for. Once the instance runs or the tools volume is ready, the page reloads and opens the
/// app.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum About {
    Instance,
    Tools,
    App,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct Step {
    pub(super) text: &'static str,
    pub(super) seconds: String,
    pub(super) done: bool,
}

/// Something that the visitor can do about it.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Act {
    pub(super) name: &'static str,
    pub(super) label: &'static str,
}

/// The visitor's language, as far as a request tells it: what the address says, else the first that the browser prefers
/// of those that there are.
pub(super) fn language_of(query: Option<&str>, headers: &HeaderMap) -> Language {
    let asked = query.and_then(|query| query.split('&').find_map(|pair| pair.strip_prefix("lang=")));
    let preferred = headers.get(header::ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let mut tags = asked.into_iter().chain(preferred.split(','));
    tags.find_map(|tag| Language::named(tag.trim())).unwrap_or(Language::English)
}

fn held_up(language: Language, held_up: &HeldUp) -> String {
    match language {
        Language::English => sentence(&language.held_up(held_up)),
        Language::Chinese => language.held_up(held_up) + "。",
    }
}

// === impl View ===

impl View {
    fn new(code: StatusCode, title: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            code,
            ready: false,
            moves: false,
            about: About::App,
            title: title.into(),
            text: text.into(),
            hint: String::new(),
            steps: Vec::new(),
            act: None,
            log: String::new(),
            link: None,
            poll: false,
            go_on: None,
        }
    }

    pub(super) fn ready() -> Self {
        Self { ready: true, ..Self::new(StatusCode::OK, "", "") }
    }

    /// There is no app at this address. The same for all who may not know better.
    pub(super) fn no_app(language: Language, console: &str) -> Self {
        let title = language.pick("There is no app at this address", "此地址没有应用");
        let text = language.pick(
            "Check its spelling, or open the app from the console.",
            "请检查拼写，或从控制台打开应用。",
        );
        Self {
            link: Some((console.to_owned(), to_console(language))),
            ..Self::new(StatusCode::NOT_FOUND, title, text)
        }
    }

    pub(super) fn sign_in(language: Language, link: String) -> Self {
        let title = language.pick("Sign in to see this app", "登录后才能查看此应用");
        let text = language.pick(
            "You are not signed in here, or no longer. It takes one click if the console knows you.",
            "您尚未在此登录，或登录已失效。如果控制台仍保持登录，点击一次即可。",
        );
        let label = language.pick("Open the app", "打开应用");
        Self { link: Some((link, label)), ..Self::new(StatusCode::UNAUTHORIZED, title, text) }
    }

    pub(super) fn used_ticket(language: Language, link: String) -> Self {
        let title = language.pick("This link has been used, or is too old", "此链接已被使用或已过期");
        let text = language
            .pick("Such a link opens an app once, within a minute.", "这种链接只能在一分钟内使用一次。");
        let label = language.pick("Open the app again", "重新打开应用");
        Self { link: Some((link, label)), ..Self::new(StatusCode::UNAUTHORIZED, title, text) }
    }

    /// An app in a frame of another site, where many browsers keep neither cookies nor anything else. Shown only if
    /// that is so here; else the page goes on by itself.
    pub(super) fn framed(language: Language, go_on: String, link: String) -> Self {
        let title = language
            .pick("This browser keeps nothing for apps in a frame", "此浏览器不允许框架中的应用保存数据");
        let text = language.pick(
            "It blocks cookies and storage of pages inside another site's, and the app does not work without.",
            "它会阻止嵌入在其他站点中的页面使用 Cookie 和存储，而应用离不开它们。",
        );
        let hint = language
            .pick("In a tab of its own the app works as it is.", "在单独的标签页中，应用可以正常使用。");
        let label = language.pick("Open in a new tab", "在新标签页中打开");
        Self {
            hint: hint.to_owned(),
            link: Some((link, label)),
            go_on: Some(go_on),
            ..Self::new(StatusCode::OK, title, text)
        }
    }

    pub(super) fn cross_site(language: Language) -> Self {
        let title = language.pick("This request came from another site", "此请求来自其他站点");
        let text = language.pick("Open the app itself and try there.", "请打开应用本身再试。");
        Self::new(StatusCode::FORBIDDEN, title, text)
    }

    pub(super) fn malformed(language: Language) -> Self {
        let title = language.pick("This request cannot be forwarded", "无法转发此请求");
        let text = language
            .pick("Its address or headers are not as they should be.", "请求的地址或头部不符合规范。");
        Self::new(StatusCode::BAD_REQUEST, title, text)
    }

    pub(super) fn trouble(language: Language) -> Self {
        let title = language.pick("Something went wrong on our side", "平台内部出错");
        let text = language
            .pick("Try again; if it stays so, tell the admin.", "请重试；如果一直如此，请联系管理员。");
        Self { poll: true, ..Self::new(StatusCode::INTERNAL_SERVER_ERROR, title, text) }
    }

    pub(super) fn too_many(language: Language, limit: usize) -> Self {
        let title = language.pick("You have too many connections open", "打开的连接过多");
        let text = match language {
            Language::English => {
                format!("There are {limit} to your apps already. Close pages of apps and try again.")
            }
            Language::Chinese => format!("您的应用已有 {limit} 个连接。请关闭一些应用页面后重试。"),
        };
        Self::new(StatusCode::TOO_MANY_REQUESTS, title, text)
    }

    pub(super) fn too_slow(language: Language) -> Self {
        let title = language.pick("The app takes too long to answer", "应用响应时间过长");
        let text = language.pick(
            "It has the request, and may still be busy with it. Look at its log, or open it again.",
            "请求已送达，应用可能仍在处理。请查看应用日志，或重新打开。",
        );
        Self::new(StatusCode::GATEWAY_TIMEOUT, title, text)
    }

    pub(super) fn agent_unreachable(language: Language, why: &str) -> Self {
        let title = language.pick("The instance does not answer", "实例没有响应");
        let text = match language {
            Language::English => sentence(why),
            Language::Chinese => "实例可能正在启动，或内存已用尽。".to_owned(),
        };
        let hint = language.pick(
            "This page tries again by itself. If it stays so, restart the instance.",
            "本页会自动重试。如果一直如此，请重启实例。",
        );
        Self { hint: hint.to_owned(), poll: true, ..Self::new(StatusCode::BAD_GATEWAY, title, text) }
    }

    pub(super) fn broken(language: Language, app: AppName, why: &str) -> Self {
        let title = match language {
            Language::English => format!("{} did not answer as a web server should", called(language, app)),
            Language::Chinese => joined("", &called(language, app), "的应答不符合 HTTP 规范"),
        };
        let hint = language.pick(
            "Look at the program's own output. If it speaks HTTPS, let it speak HTTP: the gateway adds TLS itself.",
            "请查看程序自身的输出。如果它使用 HTTPS，请改为 HTTP：TLS 由网关提供。",
        );
        Self { hint: hint.to_owned(), ..Self::new(StatusCode::BAD_GATEWAY, title, sentence(why)) }
    }

    /// An instance that does not run.
    pub(super) fn of_instance(
        language: Language,
        status: &Status,
        place: Option<&QueuePlace>,
        may_start: bool,
    ) -> Self {
        let (title, text) = match status {
            Status::Waiting { reason, message } => (
                language.pick("The instance is waiting", "实例正在等待"),
                match (language, reason) {
                    (Language::English, _) if let Some(place) = place => {
                        sentence(&Language::English.place(place))
                    }
                    (Language::Chinese, _) if let Some(place) = place => {
                        Language::Chinese.place(place) + "。"
                    }
                    (Language::English, _) => sentence(message),
                    (_, WaitReason::Queued) => "正在排队等待资源，轮到后自动启动。".to_owned(),
                    (_, WaitReason::StartingUp) => "已通知集群，即将启动。".to_owned(),
                    (_, WaitReason::ClusterUnreachable) => "集群没有响应。".to_owned(),
                    (_, WaitReason::EngineUnreachable) => "容器引擎没有响应。".to_owned(),
                    (_, WaitReason::Retrying) => format!("上次尝试失败，将自动重试：{message}"),
                },
            ),
            Status::Pulling { done_bytes, total_bytes } => {
                let mib = |bytes: u64| bytes >> 20;
                let amount = total_bytes.map_or_else(
                    || format!("{} MiB", mib(*done_bytes)),
                    |total| format!("{} / {} MiB", mib(*done_bytes), mib(total)),
                );
                (language.pick("The instance's image is being pulled", "正在拉取实例的镜像"), amount)
            }
            Status::Starting | Status::Running { .. } => {
                (language.pick("The instance is starting", "实例正在启动"), String::new())
            }
            Status::Stopping { held_up } => (
                language.pick("The instance is stopping", "实例正在停止"),
                held_up.as_ref().map(|why| self::held_up(language, why)).unwrap_or_default(),
            ),
            Status::Stopped { .. } => (
                language.pick("The instance is stopped", "实例已停止"),
                language.pick("Its files are kept.", "其文件已保留。").to_owned(),
            ),
            Status::Succeeded => {
                (language.pick("The instance's command has ended", "实例的命令已结束"), String::new())
            }
            Status::Failed { reason, exit_code, cause } => (
                language.pick("The instance has failed", "实例已失败"),
                match language {
                    Language::English => sentence(reason),
                    Language::Chinese => Language::Chinese.failure(reason, *exit_code, *cause) + "。",
                },
            ),
            Status::Deleting { held_up } => (
                language.pick("The instance is being deleted", "实例正在删除"),
                held_up.as_ref().map(|why| self::held_up(language, why)).unwrap_or_default(),
            ),
        };
        let act = (may_start && status.allows(gateway_api::Action::Start))
            .then_some(Act { name: "start", label: language.pick("Start the instance", "启动实例") });
        Self {
            moves: status.is_passing(),
            about: About::Instance,
            poll: true,
            act,
            ..Self::new(StatusCode::SERVICE_UNAVAILABLE, title, text)
        }
    }

    /// Why the button did not start the instance.
    pub(super) fn not_started(language: Language, error: &Error, back: String) -> Self {
        let problem = error.problem();
        let say = |text: String| match language {
            Language::English => sentence(&text),
            Language::Chinese => text + "。",
        };
        Self {
            hint: language.hint(&problem).map(say).unwrap_or_default(),
            link: Some((back, language.pick("Back", "返回"))),
            ..Self::new(
                error.status(),
                language.pick("The instance could not be started", "实例未能启动"),
                say(language.problem(&problem)),
            )
        }
    }

    /// An app that cannot be shown yet.
    pub(super) fn of_app(language: Language, app: &app::App) -> Self {
        let name = called(language, app.app);
        let say = |english: String, chinese: String| match language {
            Language::English => english,
            Language::Chinese => chinese,
        };
        let button = |name, english, chinese| Some(Act { name, label: language.pick(english, chinese) });
        let pending = app.preparing.as_ref().filter(|step| step.is_pending());
        let (title, act) = match (app.state, app.app) {
            (AppState::Ready, _) => return Self::ready(),
            (_, AppName::Port(port)) => (
                say(format!("Nothing listens on port {port}"), format!("端口 {port} 上没有程序在监听")),
                None,
            ),
            (AppState::Stopped, _) => (
                say(format!("{name} is stopped"), joined("", &name, "已停止")),
                button("start", "Start", "启动"),
            ),
            (AppState::Starting, _) => {
                (say(format!("{name} is starting"), joined("", &name, "正在启动")), None)
            }
            (AppState::Installing, _) => (
                say(format!("{name} is being installed"), joined("正在安装", &name, "")),
                button("stop", "Cancel", "取消"),
            ),
            (AppState::Installable, _) => (
                say(format!("{name} is not in this image"), joined("此镜像中没有", &name, "")),
                button("install", "Install it", "安装"),
            ),
            (AppState::Absent, _) if pending.is_some() => {
                (say(format!("{name} is not ready yet"), joined("", &name, "尚未就绪")), None)
            }
            (AppState::Absent, _) => {
                (say(format!("{name} cannot be had here"), joined("此处无法使用", &name, "")), None)
            }
            (AppState::Failed, _) => (
                say(format!("{name} could not be started"), joined("", &name, "未能启动")),
                button("start", "Try again", "重试"),
            ),
        };
        let (text, hint) = match (&app.problem, app.state) {
            _ if let Some(step) = &app.preparing => preparing_text(language, step),
            (Some(problem), _) => problem_text(language, problem),
            (None, AppState::Installable) => (
                language
                    .pick(
                        "It can be installed into this instance with its own Python.",
                        "可以用实例自带的 Python 安装。",
                    )
                    .to_owned(),
                String::new(),
            ),
            (None, _) => (String::new(), String::new()),
        };
        let code = if matches!(app.app, AppName::Port(_)) {
            StatusCode::BAD_GATEWAY
        } else {
            StatusCode::SERVICE_UNAVAILABLE
        };
        Self {
            moves: matches!(app.state, AppState::Starting | AppState::Installing),
            about: if pending.is_some() { About::Tools } else { About::App },
            poll: true,
            hint,
            act,
            steps: app.steps.iter().map(|step| step_of(language, step)).collect(),
            log: app.log.clone(),
            ..Self::new(code, title, text)
        }
    }

    /// The whole page.
    pub(super) fn page(&self, language: Language, place: &Place<'_>) -> Response<Bytes> {
        let nonce = format!("{:032x}", rand::random::<u128>());
        let mut steps = String::new();
        for step in &self.steps {
            let mark = if step.done { "✓" } else { "…" };
            let _ = write!(
                steps,
                "<li><span class=\"mark\">{mark}</span><span class=\"what\">{}</span><span class=\"time\">{}</span></li>",
                step.text, step.seconds
            );
        }
        let target = if self.go_on.is_some() { "_blank" } else { "_top" };
        let link = self.link.as_ref().map_or_else(String::new, |(to, label)| {
            let to = escaped(to);
            format!("<a class=\"button\" href=\"{to}\" target=\"{target}\" rel=\"noopener\">{label}</a>")
        });
        let act = self.act.unwrap_or(Act { name: "", label: "" });
        let hidden = |hide: bool| if hide { " hidden" } else { "" };
        let values = [
            ("lang", language.tag().to_owned()),
            ("nonce", nonce.clone()),
            ("title", escaped(&self.title)),
            ("text", escaped(&self.text)),
            ("hint", escaped(&self.hint)),
            ("where", escaped(place.called)),
            ("steps", steps),
            ("link", link),
            ("poll", self.poll.to_string()),
            ("go_on", self.go_on.as_deref().map(escaped).unwrap_or_default()),
            ("no_main", hidden(self.go_on.is_some()).to_owned()),
            ("status", escaped(&format!("{}.berth/status?lang={}", place.prefix, language.tag()))),
            ("act", escaped(&format!("{}.berth/act", place.prefix))),
            ("act_name", act.name.to_owned()),
            ("act_label", act.label.to_owned()),
            ("no_act", hidden(self.act.is_none()).to_owned()),
            ("no_log", hidden(self.log.is_empty()).to_owned()),
            ("open_log", " open".to_owned()),
            ("log_label", language.pick("Last lines of its log", "最后的日志").to_owned()),
            ("log", escaped(&self.log)),
        ];
        let mut response = Response::new(Bytes::from(filled(TEMPLATE, &values)));
        *response.status_mut() = self.code;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
        let policy = format!(
            "default-src 'none'; style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'; connect-src 'self'; \
             form-action 'self'; base-uri 'none'; frame-ancestors 'self' {}",
            place.consoles
        );
        if let Ok(policy) = HeaderValue::from_str(&policy) {
            headers.insert(header::CONTENT_SECURITY_POLICY, policy);
        }
        if self.code == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("2"));
        }
        response
    }

    /// The same for programs: one line.
    pub(super) fn line(&self) -> Response<Bytes> {
        let text =
            if self.text.is_empty() { self.title.clone() } else { format!("{}: {}", self.title, self.text) };
        let mut response = Response::new(Bytes::from(text + "\n"));
        *response.status_mut() = self.code;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        if self.code == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("2"));
        }
        response
    }
}

/// Where a page is shown.
#[derive(Debug)]
pub(super) struct Place<'a> {
    /// What the visitor calls it, such as `lab · train`.
    pub(super) called: &'a str,
    /// The path that all pages of the app share.
    pub(super) prefix: &'a str,
    /// Who may frame it.
    pub(super) consoles: &'a str,
}

fn step_of(language: Language, step: &app::AppStep) -> Step {
    let text = match step.step.as_str() {
        "find" => language.pick("Look for the program", "查找程序"),
        "install" => language.pick("Install it", "安装"),
        "start" => language.pick("Start it", "启动"),
        "answer" => language.pick("Wait for its first answer", "等待首次响应"),
        _ => language.pick("Go on", "继续"),
    };
    Step { text, seconds: format!("{:.1} s", step.seconds), done: step.done }
}

/// What an agent says is wrong, in the visitor's language where it is known.
fn problem_text(language: Language, problem: &app::AppProblem) -> (String, String) {
    let known = match problem.code.as_str() {
        "no_python" => {
            ("此镜像中没有 Python，无法安装。", "请使用带有 Python 的镜像，例如 localhost/berth/lab。")
        }
        "no_pip" => {
            ("此镜像的 Python 没有 pip 或 venv，无法安装。", "请先在实例中安装 pip，或换用其他镜像。")
        }
        "old_python" => (
            "此镜像的 Python 版本太旧，JupyterLab 需要 3.8 或更新的版本。",
            "请换用 Python 较新的镜像，或打开 VS Code 或终端。",
        ),
        "install_failed" => ("安装失败。", "下面的日志说明了原因，通常是网络或磁盘问题；请重试。"),
        "no_folder" => ("实例中没有这个文件夹。", "请指定一个存在的文件夹。"),
        "no_port" => ("实例中没有空闲端口。", "请结束实例中的一些程序，然后重试。"),
        "cannot_run" => ("无法运行此程序。", "镜像中缺少该程序或其用户；请检查镜像，或换用其他镜像。"),
        "no_tools" => ("本站没有提供 VS Code。", "请联系管理员，或使用自带 code-server 的镜像。"),
        "not_in_image" => ("此镜像中没有这个程序。", "请换用带有它的镜像。"),
        "ended" => ("程序自行退出了。", "请查看下面的日志，然后重试。"),
        "no_answer" => ("程序在限定时间内没有响应。", "请查看下面的日志，然后重试。"),
        "nothing_listens" => ("此端口上没有程序在监听。", "请启动您的程序并监听该端口；本页会自动打开它。"),
        "old_agent" => ("实例由旧版本启动，不支持应用。", "请停止实例后重新启动。"),
        _ => ("", ""),
    };
    match language {
        Language::Chinese if !known.0.is_empty() => (known.0.to_owned(), known.1.to_owned()),
        Language::English | Language::Chinese => (sentence(&problem.message), sentence(&problem.hint)),
    }
}

/// Returns the progress of the tools volume that the app lacks, and a hint.
fn preparing_text(language: Language, step: &PreparingStep) -> (String, String) {
    let text = match language {
        Language::English => sentence(&language.preparing(step)),
        Language::Chinese => language.preparing(step) + "。",
    };
    let hint = language.pick("This page opens it as soon as it is ready.", "就绪后，本页会自动打开。");
    (text, if step.is_pending() { hint.to_owned() } else { String::new() })
}

fn to_console(language: Language) -> &'static str {
    language.pick("Go to the console", "前往控制台")
}

fn called(language: Language, app: AppName) -> String {
    match app {
        AppName::Lab => "JupyterLab".to_owned(),
        AppName::Ide => "VS Code".to_owned(),
        AppName::Tensorboard => "TensorBoard".to_owned(),
        AppName::Desktop => language.pick("The desktop", "桌面").to_owned(),
        AppName::Terminal => language.pick("The terminal", "终端").to_owned(),
        AppName::Port(port) => match language {
            Language::English => format!("Port {port}"),
            Language::Chinese => format!("端口 {port}"),
        },
    }
}

/// A name among Chinese words: with a space where its letters or digits touch them.
fn joined(before: &str, name: &str, after: &str) -> String {
    let gap = |at: Option<char>, beside: &str| match at {
        Some(letter) if letter.is_ascii_alphanumeric() && !beside.is_empty() => " ",
        Some(_) | None => "",
    };
    let (first, last) = (gap(name.chars().next(), before), gap(name.chars().last(), after));
    format!("{before}{first}{name}{last}{after}")
}

/// A message of ours, which has neither capital nor full stop, as a sentence.
fn sentence(message: &str) -> String {
    let mut letters = message.chars();
    let Some(first) = letters.next() else { return String::new() };
    let end = if message.ends_with(['.', '!', '?', '。', '！', '？']) { "" } else { "." };
    format!("{}{}{end}", first.to_uppercase(), letters.as_str())
}

pub(super) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            letter => safe.push(letter),
        }
    }
    safe
}

/// Fills `{{name}}`; what is filled in is never looked at again.
fn filled(template: &str, values: &[(&str, String)]) -> String {
    let mut page = String::with_capacity(template.len() + 4096);
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        page.push_str(before);
        let Some((name, after)) = after.split_once("}}") else { break };
        let value = values.iter().find(|(known, _)| *known == name);
        debug_assert!(value.is_some(), "{name}");
        page.push_str(value.map_or("", |(_, value)| value));
        rest = after;
    }
    page.push_str(rest);
    page
}

#[cfg(test)]
mod tests {
    use gateway_api::preparing::{PreparingState, PreparingWhat};

    use super::*;

    #[test]
    fn nothing_that_an_instance_says_becomes_markup() {
        let app = app::App {
            app: AppName::Lab,
            state: AppState::Failed,
            source: None,
            steps: vec![app::AppStep { step: "start".to_owned(), seconds: 1.25, done: true }],
            problem: Some(app::AppProblem {
                code: "<b>".to_owned(),
                message: "<script>alert(1)</script>".to_owned(),
                hint: "\" onload=\"{{nonce}}".to_owned(),
            }),
            preparing: None,
            log: "</pre><img src=x>{{log}}".to_owned(),
            port: None,
            url: String::new(),
        };
        for language in [Language::English, Language::Chinese] {
            let place = Place { called: "lab · <train>", prefix: "/", consoles: "http://localhost:8080" };
            let response = View::of_app(language, &app).page(language, &place);
            let text = String::from_utf8(response.body().to_vec()).unwrap();
            for wrong in ["<script>a", "<img", "<train>", "onload=\""] {
                assert!(!text.contains(wrong), "{wrong}: {text}");
            }
            assert!(text.contains("{{nonce}}") && text.contains("{{log}}"), "filled in once only");
            assert!(
                response.headers()[header::CONTENT_SECURITY_POLICY]
                    .to_str()
                    .unwrap()
                    .starts_with("default-src 'none'")
            );
        }
    }

    #[test]
    fn an_app_without_tools_says_when_they_are_ready() {
        let check = |state, seconds_left, language, expected: [&str; 3], about: &str| {
            let step = PreparingStep { what: PreparingWhat::Tools, state, seconds_left };
            let app = app::App {
                app: AppName::Ide,
                state: AppState::Absent,
                source: None,
                steps: Vec::new(),
                problem: Some(app::AppProblem {
                    code: "no_tools".to_owned(),
                    message: "there are none".to_owned(),
                    hint: "ask for them".to_owned(),
                }),
                preparing: Some(step),
                log: String::new(),
                port: None,
                url: String::new(),
            };
            let view = View::of_app(language, &app);
            assert_eq!([view.title.as_str(), &view.text, &view.hint], expected);
            assert_eq!(serde_json::to_value(view.about).unwrap(), about);
        };
        check(
            PreparingState::Waiting,
            Some(360),
            Language::English,
            [
                "VS Code is not ready yet",
                "VS Code is being prepared, about 6 minutes left.",
                "This page opens it as soon as it is ready.",
            ],
            "tools",
        );
        check(
            PreparingState::Working,
            None,
            Language::Chinese,
            ["VS Code 尚未就绪", "VS Code 正在准备中。", "就绪后，本页会自动打开。"],
            "tools",
        );
        check(
            PreparingState::Failed,
            None,
            Language::English,
            [
                "VS Code cannot be had here",
                "VS Code could not be prepared; an admin finds the reason in logs/images.log.",
                "",
            ],
            "app",
        );
    }

    #[test]
    fn every_problem_has_words_in_both_languages() {
        for code in app::PROBLEMS {
            let problem = app::AppProblem {
                code: code.to_owned(),
                message: "what".to_owned(),
                hint: "what to do".to_owned(),
            };
            let in_english = ("What.".to_owned(), "What to do.".to_owned());
            assert_eq!(problem_text(Language::English, &problem), in_english);
            let (what, hint) = problem_text(Language::Chinese, &problem);
            assert!(!what.is_ascii() && !hint.is_ascii(), "{code}: {what} {hint}");
        }
    }

    #[test]
    fn a_name_among_chinese_words_has_its_space() {
        assert_eq!(joined("", "JupyterLab", "正在启动"), "JupyterLab 正在启动");
        assert_eq!(joined("正在安装", "VS Code", ""), "正在安装 VS Code");
        assert_eq!(joined("", "端口 80", "的应答"), "端口 80 的应答");
        assert_eq!(joined("", "桌面", "已停止"), "桌面已停止");
    }

    #[test]
    fn the_language_is_the_visitors() {
        let check = |query: Option<&str>, accept: &str, expected| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_LANGUAGE, accept.parse().unwrap());
            assert_eq!(language_of(query, &headers), expected, "{query:?} {accept}");
        };
        check(None, "zh-CN,zh;q=0.9,en;q=0.8", Language::Chinese);
        check(None, "en-GB,zh;q=0.9", Language::English);
        check(None, "fr,zh;q=0.5", Language::Chinese);
        check(None, "fr", Language::English);
        check(Some("a=b&lang=zh-CN"), "en", Language::Chinese);
        check(Some("lang=xx"), "zh", Language::Chinese);
    }
}
