//! Each paragraph of the help and what it is in Chinese.

pub(super) const CHINESE: &[(&str, &str)] = &[
    (
        crate::AFTER_HELP,
        "\
退出码：
  0    完成
  1    未成功；原因见标准错误
  2    命令行有误
  125  `exec`：berth 自身出错
  127  `exec`：命令不存在，或不是程序
  其他 `exec`：命令自己的退出码，或 128 加上终止它的信号编号

环境变量：
  BERTH_URL, BERTH_TOKEN  网关与访问令牌，代替 `berth login` 保存的内容
  BERTH_CONFIG            `berth login` 保存内容的文件 [~/.config/berth/config.toml]
  BERTH_LANG              消息的语言：`en` 或 `zh` [取自 LC_ALL、LC_MESSAGES、LANG]
  NO_COLOR                不使用颜色",
    ),
    ("Machines of your own behind one door", "同一扇门后，属于您自己的机器"),
    // === commands ===
    ("Sign in to a gateway", "登录网关"),
    ("Sign out and forget the token", "退出登录并忘记令牌"),
    ("Say who is signed in", "显示当前登录的用户"),
    (
        "Submit a job: a file from here or elsewhere, or a command",
        "提交任务：本平台或其他平台的任务文件，或一条命令",
    ),
    (
        "The format of a file is recognised: OpenPAI v1 and v2, DLC parameters, Determined, our own. With `--wait` the exit code is the job's: 0 if it succeeded, that of the task that failed, or 1 if it was stopped.",
        "自动识别文件格式：OpenPAI v1 与 v2、DLC 参数、Determined、Berth 自己的格式。使用 `--wait` 时退出码即任务的结果：成功为 0，失败为出错子任务的退出码，被停止为 1。",
    ),
    ("List your jobs", "列出您的任务"),
    ("Submit the file of a job once more", "再次提交某个任务的文件"),
    ("Change the time limit or the priority of a job", "修改任务的运行时长或优先级"),
    ("Make an instance and start it", "创建并启动实例"),
    ("List your instances", "列出您的实例"),
    ("Show everything about an instance or a job", "显示实例或任务的全部信息"),
    ("Start stopped instances; their files are as they were", "启动已停止的实例；文件保持原样"),
    ("Stop instances, whose files stay, and jobs", "停止实例（文件保留）和任务"),
    ("Stop and start instances", "重启实例"),
    (
        "Delete instances and their files, and jobs; /userhome is kept",
        "删除实例及其文件，以及任务；/userhome 保留",
    ),
    ("Print what an instance's command, or a job's task, has written", "显示实例的命令或任务的子任务的输出"),
    (
        "A task is named `JOB/ROLE/0`; `JOB` alone is its first. What a task wrote is kept after its end.",
        "子任务写作 `JOB/ROLE/0`；只写 `JOB` 即第一个。子任务的输出在结束后仍保留。",
    ),
    ("Run a command in a running instance", "在运行中的实例里执行命令"),
    ("Attach to a terminal that goes on without you", "连接到离开后仍继续运行的终端"),
    (
        "Ctrl-] detaches. The terminal and what runs in it stay; attaching again, here or in the console, shows the same.",
        "按 Ctrl-] 离开。终端及其中运行的程序保留；再次连接（在此处或控制台中）看到的是同一个终端。",
    ),
    ("List an instance's terminals, or close some", "列出实例的终端，或关闭其中一些"),
    ("Open a tool of an instance, or a port of it, in the browser", "在浏览器中打开实例的工具或端口"),
    (
        "The browser is signed in by the address itself, which works once and for less than a minute. `$BROWSER` names the browser; where there is none the address is printed.",
        "地址本身会让浏览器登录，只能用一次，且一分钟内有效。`$BROWSER` 指定浏览器；没有浏览器时打印地址。",
    ),
    ("Make ports of an instance ports of this machine", "把实例的端口映射到本机"),
    ("Show a folder in TensorBoard, in an instance of its own", "用单独的实例以 TensorBoard 显示一个文件夹"),
    ("Open a shell in an instance by SSH, or run a command there", "通过 SSH 在实例中打开 shell，或执行命令"),
    (
        "Nothing needs to be configured: a key is made and registered on first use, and the host key is known from the gateway. Of an instance that is not running yet one sees what goes on.",
        "无需任何配置：首次使用时生成并登记密钥，主机密钥由网关告知。实例尚未运行时可以看到进展。",
    ),
    (
        "Submit a job to work in, as a file describes it, and open a shell in it",
        "按文件的描述提交供操作的任务，并在其中打开 shell",
    ),
    (
        "The job stays when the shell ends: `berth ssh NAME/main/0` opens another one, `berth stop` ends it.",
        "shell 结束后任务仍在运行：`berth ssh NAME/main/0` 再打开一个，`berth stop` 停止任务。",
    ),
    ("Copy files to and from instances, as `scp` does", "与实例之间复制文件，用法同 `scp`"),
    (
        "Let `ssh NAME.berth`, editors and all other SSH clients find your instances",
        "让 `ssh NAME.berth`、编辑器和其他 SSH 客户端找到您的实例",
    ),
    ("Manage the keys that you sign in with over SSH", "管理用于 SSH 登录的密钥"),
    ("Save an instance's files as an image; it goes on meanwhile", "把实例的文件保存为镜像；实例继续运行"),
    (
        "Mounted folders such as /userhome are never in it, and caches and /tmp are not unless you say so. Whoever may use the image can read all files in it.",
        "/userhome 等挂载的文件夹从不包含在内；缓存和 /tmp 除非指定也不包含。能使用该镜像的人可以读取其中的全部文件。",
    ),
    ("List the images that instances can be made from", "列出可用于创建实例的镜像"),
    ("Show, share and delete saved images", "查看、共享和删除已保存的镜像"),
    ("List the machines that run instances", "列出运行实例的节点"),
    (
        "List the graphics processors: who has which, since when, and how busy each is",
        "列出 GPU：谁在用、从何时起、有多忙",
    ),
    ("Sum up what was held over time: GPU hours and CPU hours", "统计一段时间内的占用：GPU 时与 CPU 时"),
    ("Show what a job file from elsewhere becomes here", "显示其他平台的任务文件在这里会变成什么"),
    (
        "The format is recognised. The job is printed as Berth's own YAML; what is wrong with the file is said with its line and what to write instead, all at once. Whoever is signed in gets what the site makes of it.",
        "自动识别格式。任务以 Berth 的 YAML 打印；文件中的全部错误连同行号与改法一次说清。已登录时按站点的设置转换。",
    ),
    ("Look for what stands between you and your instances", "检查您与实例之间有什么问题"),
    ("Manage users", "管理用户"),
    ("Manage groups: every user is in one", "管理用户组：每个用户属于一个用户组"),
    ("Manage workspaces: a user can be in many", "管理工作空间：一个用户可属于多个"),
    ("See and set what users and groups may hold at a time", "查看和设置用户与用户组的配额"),
    ("Manage tokens for scripts", "管理供脚本使用的访问令牌"),
    (
        "Manage secrets: values that are used by name, and logins of registries",
        "管理密钥：按名称使用的值，以及镜像仓库的登录",
    ),
    ("Print the audit log", "显示操作日志"),
    ("Change your password", "修改密码"),
    (
        "Without a terminal the current password and the new one are read from standard input, a line each.",
        "没有终端时，从标准输入读取当前密码和新密码，各占一行。",
    ),
    ("Print a completion script for a shell", "打印 shell 的补全脚本"),
    ("Print the version", "显示版本"),
    // === what many of them have ===
    ("Print JSON", "输出 JSON"),
    ("Wait until it is done, and fail if it fails", "等待完成；若失败则以失败结束"),
    ("How long to wait", "最长等待时间"),
    (
        "How long to wait [default: an hour, and for a job until it has ended]",
        "最长等待时间 [默认：一小时；任务则等到结束]",
    ),
    ("The instance", "实例"),
    ("The instances", "实例"),
    ("The job", "任务"),
    ("The image", "镜像"),
    ("The instance or the job", "实例或任务"),
    ("Print names only", "只打印名称"),
    ("Processors", "CPU 核数"),
    ("Memory, such as `512M`, `8G` or `1.5G`", "内存，例如 `512M`、`8G` 或 `1.5G`"),
    ("Shared memory (/dev/shm) [default: the site's own]", "共享内存（/dev/shm）[默认：由站点决定]"),
    ("Graphics processors", "GPU 数量"),
    ("The model of graphics processor", "GPU 型号"),
    ("The model of graphics processor, such as `3090`", "GPU 型号，例如 `3090`"),
    (
        "Set a variable in its environment; without `=VALUE` it is taken from this shell",
        "设置环境变量；不写 `=VALUE` 时取当前 shell 中的值",
    ),
    ("From 1 to 9, 9 first", "1 到 9，9 最先"),
    (
        "The shell, as in `source <(berth completion bash)`",
        "shell 的种类，例如 `source <(berth completion bash)`",
    ),
    (
        "A job file (OpenPAI v1 or v2, DLC parameters, Determined or our own), or the address of one; `-` is standard input",
        "任务文件（OpenPAI v1 或 v2、DLC 参数、Determined 或 Berth 格式）或其网址；`-` 为标准输入",
    ),
    // === create, submit ===
    ("Its name: letters, digits and underscores, at most 27", "名称：字母、数字和下划线，最多 27 个字符"),
    (
        "The image to start from, such as `python:3.12` [default: the site's own]",
        "使用的镜像，例如 `python:3.12` [默认：由站点决定]",
    ),
    ("The image to start from [default: the site's own]", "使用的镜像 [默认：由站点决定]"),
    (
        "Use a secret: as the variable of its name or of another, or as the file /.berth/secrets/NAME",
        "使用密钥：作为同名或其他名称的环境变量，或作为文件 /.berth/secrets/NAME",
    ),
    ("SSH starts it when it is stopped, without asking", "已停止时 SSH 直接启动它，不再询问"),
    ("Say what would become of it, and make nothing", "只说明会怎样，不创建"),
    (
        "What to run; the instance ends when this ends [default: nothing, it stays until stopped]",
        "要运行的命令；命令结束时实例结束 [默认：无，一直运行到被停止]",
    ),
    (
        "A job file, or the address of one (`https://…`); `-` is standard input",
        "任务文件或其地址（`https://…`）；`-` 为标准输入",
    ),
    (
        "Its name, instead of the file's own: letters, digits, `-`, `.`, `_` and `~`",
        "代替文件中名称的任务名：字母、数字、`-`、`.`、`_` 和 `~`",
    ),
    ("How long it may run, such as `90s`, `30m` or `12h`", "最长运行时长，例如 `90s`、`30m` 或 `12h`"),
    ("How often to try again after a failure", "失败后重试的次数"),
    ("Keep its files if it fails, to look at them", "失败时保留文件以便查看"),
    ("Say what would become of it, and submit nothing", "只说明会怎样，不提交"),
    ("Print what its first task writes, until it has ended", "持续显示第一个子任务的输出，直到结束"),
    ("What to run, instead of a file", "代替文件，要运行的命令"),
    // === jobs, logs ===
    ("Everyone's that you may see", "包括您可以看到的所有人的"),
    ("The new job's name [default: the old one with a number]", "新任务的名称 [默认：旧名称加编号]"),
    (
        "How long it may run from its start, such as `90s`, `30m` or `12h`; `0` for as long as it takes",
        "自启动起的最长运行时长，例如 `90s`、`30m` 或 `12h`；`0` 为不限",
    ),
    ("The instance, the job, or a task of it: `JOB/ROLE/0`", "实例、任务，或其子任务：`JOB/ROLE/0`"),
    ("Go on until it ends", "持续显示直到结束"),
    (
        "Only the last lines [default: 1000 for an instance, all for a job]",
        "只显示最后若干行 [默认：实例 1000 行，任务全部]",
    ),
    (
        "Only what came since, such as `10m` ago or `2026-01-31T12:00:00Z`",
        "只显示此后的输出，例如 `10m`（之前）或 `2026-01-31T12:00:00Z`",
    ),
    ("Only lines that hold this text", "只显示包含此文字的行"),
    ("For a job: which try, from 1 [default: the last]", "任务：第几次尝试，从 1 开始 [默认：最后一次]"),
    ("Print names only; ids with `--all`", "只打印名称；与 `--all` 一起时打印编号"),
    (
        "Not only yours but all that you may see: the group's for its leader, everyone's for an admin",
        "不只是您的，而是您可以看到的全部：组长看到本组的，管理员看到所有人的",
    ),
    ("For a job: print its file as it was submitted", "任务：打印提交时的文件"),
    (
        "For a job: print what its file became, as Berth's own YAML",
        "任务：以 Berth 的 YAML 打印文件转换的结果",
    ),
    (
        "For what a failed task of a job left: so many graphics processors of the kind that it had [default: none]",
        "用于失败子任务留下的环境：同型号 GPU 的数量 [默认：无]",
    ),
    // === exec, terminals, open, ports ===
    ("Give the command a terminal", "为命令分配终端"),
    ("As in docker; standard input is always passed on", "与 docker 相同；标准输入总是传入"),
    ("Pass no standard input on", "不传入标准输入"),
    ("The directory to run it in", "运行命令的目录"),
    ("The command and its arguments", "命令及其参数"),
    (
        "The terminal: lower-case letters, digits and hyphens; the first use makes it",
        "终端：小写字母、数字和连字符；首次使用时创建",
    ),
    (
        "Close this terminal: its shell is hung up, as when a window is closed",
        "关闭该终端：其 shell 被挂断，如同关闭窗口",
    ),
    (
        "A port here and the port there, if they differ; 0 here takes any free one",
        "本机端口与实例端口（相同时写一个）；本机写 0 则取任一空闲端口",
    ),
    (
        "`lab`, `ide`, `terminal`, `tensorboard`, `desktop`, or the number of a port",
        "`lab`、`ide`、`terminal`、`tensorboard`、`desktop`，或端口号",
    ),
    (
        "The folder to begin in; with `tensorboard` the one to show",
        "起始文件夹；对 `tensorboard` 为要显示的文件夹",
    ),
    (
        "Print an address that signs in one browser, once and soon, instead of opening it",
        "不打开，而是打印一个可让浏览器登录一次的短时地址",
    ),
    (
        "The folder with the event files, as an instance sees it, such as `/userhome/runs`",
        "事件文件所在的文件夹（实例中的路径），例如 `/userhome/runs`",
    ),
    ("The instance's name [default: made up]", "实例的名称 [默认：自动生成]"),
    ("Wait until it runs and open it in the browser", "等待运行后在浏览器中打开"),
    // === images ===
    (
        "The image's name and tag (`NAME:` for date and time), or its tag alone [default: the instance's name, and date and time]",
        "镜像的名称和标签（`NAME:` 以日期时间为标签），或只写标签 [默认：实例名称与日期时间]",
    ),
    ("What to remember about it", "备注"),
    (
        "Leave a path out, instead of caches and /tmp; a part of it may be `*`",
        "排除某个路径（代替默认排除的缓存和 /tmp）；其中一段可以是 `*`",
    ),
    ("Leave nothing out", "不排除任何内容"),
    ("Who may use it", "谁可以使用"),
    ("Stop the instance once the image is whole", "镜像完整后停止实例"),
    ("Only show what would be in it", "只显示会包含什么"),
    ("Show everything about an image", "显示镜像的全部信息"),
    (
        "Print a Dockerfile that would make the like of a saved image, and the versions of what is in it",
        "打印可制作类似镜像的 Dockerfile，以及其中各软件的版本",
    ),
    ("Delete saved images, or give up saving them", "删除已保存的镜像，或放弃正在进行的保存"),
    ("Say who may use a saved image", "设置谁可以使用已保存的镜像"),
    ("Propose an image for the platform's list", "推荐镜像进入平台列表"),
    ("Put an image on the platform's list, as an admin", "管理员：把镜像加入平台列表"),
    (
        "The image: `NAME:TAG`, `USER/NAME:TAG`, its reference or id",
        "镜像：`NAME:TAG`、`USER/NAME:TAG`、完整引用或编号",
    ),
    (
        "The images: `NAME:TAG`, `USER/NAME:TAG`, references or ids",
        "镜像：`NAME:TAG`、`USER/NAME:TAG`、完整引用或编号",
    ),
    ("Take the proposal back", "撤回推荐"),
    ("Take it off the list", "从列表中移除"),
    (
        "Give an image another name; by the one before it nobody finds it any more",
        "给镜像改名；之后用旧名称不再能找到它",
    ),
    ("Try a save again that failed", "重试失败的保存"),
    ("Give back the room of images that are gone, as an admin", "管理员：回收已删除镜像占用的空间"),
    (
        "Its new name and tag, its name alone (`NAME:`), or its tag alone",
        "新的名称和标签，或只写名称（`NAME:`），或只写标签",
    ),
    ("Only show what would go", "只显示会删除什么"),
    (
        "What was written since so long stays, as a push may still be under way",
        "在这段时间内写入的内容保留，因为可能仍在推送",
    ),
    (
        "Also images that the store does not know, since it was put back from a backup",
        "也清除数据库因恢复自备份而不认识的镜像",
    ),
    (
        "Show what you, your group and the shares of the site hold, images included, and what they may",
        "显示您、用户组以及各份额的占用（包括镜像）与上限",
    ),
    (
        "What images take in the registry, such as `50G`, or `none`",
        "镜像在仓库中占用的空间，例如 `50G`；或 `none`",
    ),
    // === tokens, audit log ===
    ("List your tokens", "列出您的访问令牌"),
    (
        "Make a token and print its secret, which is shown this once",
        "创建访问令牌并打印其内容（只显示这一次）",
    ),
    ("Make tokens worthless, by name or id", "按名称或编号作废访问令牌"),
    ("Whose, for admins", "谁的（供管理员使用）"),
    ("What you call it", "名称"),
    ("What it opens", "用途范围"),
    ("For how long: 1 to 366 days [default: 90]", "有效天数：1 到 366 [默认：90]"),
    ("All that you may do, but for making tokens", "您能做的一切，但不能创建令牌"),
    ("Lists, details and logs only", "仅限列表、详情和日志"),
    (
        "Only what is not older: a moment such as `2026-01-31T12:00:00Z`, or a time span such as `2h` or `7d`",
        "只显示此后的：时间如 `2026-01-31T12:00:00Z`，或时长如 `2h`、`7d`",
    ),
    ("Only what this user did", "只显示该用户的操作"),
    ("Only this act, such as `sign_in` or `user.remove`", "只显示这种操作，例如 `sign_in` 或 `user.remove`"),
    ("The most lines", "最多行数"),
    ("Print JSON, one object per line", "输出 JSON，每行一个对象"),
    // === signing in ===
    (
        "The gateway's address, such as `http://localhost:8080` [default: the last one]",
        "网关地址，例如 `http://localhost:8080` [默认：上一次的]",
    ),
    ("The user's name", "用户名"),
    ("Read the password from standard input instead of asking for it", "从标准输入读取密码，而不是询问"),
    (
        "Look at the server in this data directory instead, on its own machine",
        "改为检查本机上使用此数据目录的服务端",
    ),
    // === people ===
    (
        "List the users: all for an admin, the own group for its leader",
        "列出用户：管理员看到全部，组长看到本组",
    ),
    ("Add a user and print the first password", "添加用户并打印初始密码"),
    ("Show everything about a user", "显示用户的全部信息"),
    (
        "Keep users from signing in; their sessions and tokens end at once, their instances go on",
        "禁止用户登录；其会话和令牌立即失效，实例继续运行",
    ),
    ("Let disabled users sign in again", "允许被禁用的用户重新登录"),
    (
        "Remove users: sessions and tokens end and instances stop at once; files are kept",
        "移除用户：会话和令牌立即失效，实例立即停止；文件保留",
    ),
    (
        "For some days (30, unless the site says otherwise) `berth user restore` brings an account back. After that its instances are deleted and the name is free. The files are never deleted.",
        "若干天内（默认 30 天，由站点设定）可用 `berth user restore` 恢复账号。之后其实例被删除，用户名可再用。文件从不删除。",
    ),
    ("Bring a removed user back", "恢复被移除的用户"),
    (
        "Give a user a new random password and print it; sessions, tokens and SSH keys end, secrets are deleted",
        "为用户生成新的随机密码并打印；其会话、令牌和 SSH 公钥失效，密钥被删除",
    ),
    ("Give a user another role", "修改用户的角色"),
    ("Put a user into another group", "把用户移到另一个用户组"),
    ("List the groups", "列出用户组"),
    ("Add a group", "添加用户组"),
    ("Show a group and its members", "显示用户组及其成员"),
    ("Remove groups that have no members", "移除没有成员的用户组"),
    (
        "Their files in storages stay, and a later group of the same name gets them.",
        "它们在存储中的文件保留，以后同名的用户组会得到这些文件。",
    ),
    ("List your workspaces; an admin sees all", "列出您的工作空间；管理员看到全部"),
    ("Add a workspace", "添加工作空间"),
    ("Show a workspace and its members", "显示工作空间及其成员"),
    ("Remove workspaces", "移除工作空间"),
    ("Put users into a workspace", "把用户加入工作空间"),
    ("Take users out of a workspace", "把用户移出工作空间"),
    (
        "Lower-case letters, digits, `.`, `_` and `-`, 2 to 32 of them",
        "小写字母、数字、`.`、`_` 和 `-`，2 到 32 个字符",
    ),
    ("The group [default: `default`]", "用户组 [默认：`default`]"),
    ("Leads the own group", "管理自己的用户组"),
    // === quotas, usage ===
    ("Show what a user or a group may hold at a time", "显示用户或用户组的配额"),
    (
        "Set what a user or a group may hold at a time; what is left out stays as it is",
        "设置用户或用户组的配额；未写的项保持不变",
    ),
    ("Processors, or `none` for no limit", "CPU 数量；`none` 表示不限"),
    ("Memory, such as `512M`, `8G` or `1.5G`, or `none`", "内存，例如 `512M`、`8G` 或 `1.5G`；或 `none`"),
    ("Graphics processors, or `none`", "GPU 数量；或 `none`"),
    ("Graphics processors of a model, or `none`", "某个型号的 GPU 数量；或 `none`"),
    ("Instances that run at a time, or `none`", "同时运行的实例数；或 `none`"),
    ("Jobs that run at a time, or `none`", "同时运行的任务数；或 `none`"),
    (
        "Only for so long, such as `12h` or `3d`; then the quota is what it was. `0` ends what was raised",
        "只在这段时间内有效，例如 `12h` 或 `3d`；之后恢复原配额。`0` 立即结束临时调整",
    ),
    ("How far back, such as `12h` or `30d`", "统计多久以来，例如 `12h` 或 `30d`"),
    ("What to sum up by", "按什么汇总"),
    (
        "Not only yours: the group's for its leader, everyone's for an admin",
        "不只是您的：组长看到本组的，管理员看到所有人的",
    ),
    ("Print JSON: each user, group and model on its own", "输出 JSON：每个用户、用户组和型号各一项"),
    // === secrets ===
    ("List your secrets; values are never shown", "列出您的密钥；值从不显示"),
    (
        "Set a secret, new or not; its value is asked for, or read from standard input",
        "设置密钥（新建或修改）；其值会被询问，或从标准输入读取",
    ),
    (
        "With `--registry` and `--user` it is the password of a registry, which is given to that registry alone when an image comes from there.",
        "带 `--registry` 和 `--user` 时是镜像仓库的密码，只在拉取该仓库的镜像时交给该仓库。",
    ),
    ("Remove secrets", "移除密钥"),
    ("The site's, for admins", "站点的（供管理员使用）"),
    ("What you call it, such as `HF_TOKEN`", "名称，例如 `HF_TOKEN`"),
    (
        "The registry that it is the password of, such as `registry.example.org:5000`",
        "该密码所属的镜像仓库，例如 `registry.example.org:5000`",
    ),
    ("Who signs in to that registry", "登录该仓库的用户"),
    (
        "For everyone's images, by an admin; only with `--registry`",
        "管理员：供所有人的镜像使用；仅与 `--registry` 一起",
    ),
    // === SSH ===
    (
        "What is to be worked in: a Determined configuration, or a job file without a command; `-` is standard input",
        "要操作的任务：Determined 配置，或没有命令的任务文件；`-` 为标准输入",
    ),
    ("Its name [default: the file's own, or `shell`]", "名称 [默认：文件中的名称，或 `shell`]"),
    ("Processors, whatever the file says", "CPU 核数，以此为准"),
    ("Memory, whatever the file says", "内存，以此为准"),
    ("Graphics processors, whatever the file says", "GPU 数量，以此为准"),
    ("A command to run instead of the shell", "代替 shell 运行的命令"),
    ("The instance; the address works before it runs", "实例；运行之前地址就已可用"),
    (
        "Print where it is, for other clients, and the host key's fingerprint",
        "打印供其他客户端使用的地址，以及主机密钥指纹",
    ),
    ("A command to run instead of a shell", "代替 shell 运行的命令"),
    ("Print it instead of writing it", "打印而不写入"),
    (
        "What to copy and, last, where to: a path, or NAME:PATH in an instance",
        "要复制的内容，最后是目的地：路径，或实例中的 NAME:PATH",
    ),
    ("Folders too", "包括文件夹"),
    ("List your keys", "列出您的密钥"),
    ("Add a key that you have", "添加已有的密钥"),
    ("Make a pair of keys and add the public half", "生成一对密钥并登记公钥"),
    ("Remove keys, by name or id; what they opened is closed", "按名称或编号移除密钥；由它打开的连接被关闭"),
    ("The file of the key, with or without `.pub`", "密钥文件，带不带 `.pub` 均可"),
    ("What you call it [default: the key's comment]", "名称 [默认：密钥的注释]"),
    (
        "Without a proof that you have the private half: then `ssh USER+INSTANCE@…` comes first",
        "不证明持有私钥：此时须先用 `ssh USER+INSTANCE@…` 登录一次",
    ),
    ("Where the private half goes; the public one goes beside it", "私钥的保存位置；公钥保存在旁边"),
    ("The cluster to make it on [default: the site's first]", "在哪个集群上创建 [默认：本站点的第一个]"),
    (
        "The cluster to run it on [default: the file's own, or the site's first]",
        "在哪个集群上运行 [默认：文件里写的集群，否则为本站点的第一个]",
    ),
    ("The pool to take room from, instead of the file's own", "使用哪个资源池，代替文件中写的"),
    ("The pool to take room from; `berth nodes` shows them", "使用哪个资源池；`berth nodes` 会列出"),
];
