//! Sentences about images and saving.

use gateway_api::image::{Changes, CollectedImages, ImageState, SaveFailure, SaveStep, Share, Since};

use super::{
    Language::{Chinese, English},
    Words,
};
use crate::size;

impl Words {
    pub(crate) fn image_state(self, state: &ImageState) -> &'static str {
        match state {
            ImageState::Saving { .. } => self.pick("saving", "保存中"),
            ImageState::Ready => self.pick("ready", "就绪"),
            ImageState::Failed { .. } => self.pick("failed", "失败"),
            ImageState::Deleting => self.pick("deleting", "删除中"),
        }
    }

    /// The state with what is known about it.
    pub(crate) fn image_state_in_full(self, state: &ImageState) -> String {
        let word = self.image_state(state);
        let more = match state {
            ImageState::Saving { step, done_bytes, total_bytes } => {
                let step = self.step(*step);
                match total_bytes {
                    None => step.to_owned(),
                    Some(total) => format!("{step}, {}", self.part(*done_bytes, *total)),
                }
            }
            ImageState::Failed { failure, message } => self.save_failure(*failure, message),
            ImageState::Ready | ImageState::Deleting => return word.to_owned(),
        };
        match self.0 {
            English => format!("{word}: {more}"),
            Chinese => format!("{word}：{more}"),
        }
    }

    /// Why an instance was not saved. The cluster's own sentence is English.
    pub(crate) fn save_failure(self, failure: SaveFailure, message: &str) -> String {
        if self.is_english() {
            return message.to_owned();
        }
        let why = match failure {
            SaveFailure::NoRegistry => "本站没有镜像仓库，请联系管理员",
            SaveFailure::InstanceGone => "实例已不存在",
            SaveFailure::RegistryUnreachable => "镜像仓库没有响应",
            SaveFailure::RegistryRefused => return self.0.with_cause("镜像仓库拒绝了请求", message),
            SaveFailure::RegistryFull => "镜像仓库已满，请删除旧镜像或联系管理员",
            SaveFailure::DiskFull => "节点磁盘已满，请删除文件或联系管理员",
            SaveFailure::EngineUnreachable => "容器引擎没有响应",
            SaveFailure::Cancelled => "已取消",
            SaveFailure::Other => message,
        };
        why.to_owned()
    }

    fn step(self, step: SaveStep) -> &'static str {
        match step {
            SaveStep::Waiting => self.pick("waiting for the cluster", "等待集群"),
            SaveStep::Looking => self.pick("looking for changes", "查找改动"),
            SaveStep::Packing => self.pick("reading and compressing", "读取并压缩"),
            SaveStep::Pushing => self.pick("sending to the registry", "上传到镜像仓库"),
            SaveStep::Verifying => self.pick("checking", "校验"),
        }
    }

    pub(crate) fn share(self, share: Share) -> &'static str {
        match share {
            Share::Me => self.pick("me", "仅自己"),
            Share::Group => self.pick("my group", "本组"),
            Share::Everyone => self.pick("everyone", "所有人"),
        }
    }

    pub(crate) fn platform(self) -> &'static str {
        self.pick("platform", "平台")
    }

    pub(crate) fn yes_default(self, default: bool) -> &'static str {
        if default { self.pick("default", "默认") } else { "" }
    }

    pub(crate) fn being_saved(self, name: &str) -> String {
        match self.0 {
            English => format!("`{name}` is being saved; `berth image show {name}` tells how far it is"),
            Chinese => format!("正在保存 `{name}`；`berth image show {name}` 可查看进展"),
        }
    }

    pub(crate) fn not_saved(self, instance: &str, why: &str) -> String {
        match self.0 {
            English => format!("`{instance}` was not saved: {why}"),
            Chinese => format!("`{instance}` 未能保存：{why}"),
        }
    }

    /// What has gone of what no image needs, or would.
    pub(crate) fn collected(self, collected: &CollectedImages, would: bool) -> String {
        let CollectedImages { blobs, images, own_registry, .. } = collected;
        let bytes = size::display(collected.blob_bytes);
        let copies = (images.len(), size::display(collected.image_bytes));
        let registry = match (own_registry, would) {
            (false, _) => {
                let theirs = "The registry is not Berth's own: it collects its garbage itself.";
                self.pick(theirs, "该仓库不由 Berth 运行，由其自行回收空间。").to_owned()
            }
            (true, true) => match self.0 {
                English => format!("{blobs} blobs with {bytes} would go from the registry."),
                Chinese => format!("将从仓库中清除 {blobs} 个数据块，共 {bytes}。"),
            },
            (true, false) => match self.0 {
                English => format!("{blobs} blobs with {bytes} have gone from the registry."),
                Chinese => format!("已从仓库中清除 {blobs} 个数据块，共 {bytes}。"),
            },
        };
        let (copies, bytes) = copies;
        let engine = match (self.0, would) {
            (English, true) => format!("{copies} copies with {bytes} would go from the machine."),
            (English, false) => format!("{copies} copies with {bytes} have gone from the machine."),
            (Chinese, true) => format!("将从本机清除 {copies} 个镜像副本，共 {bytes}。"),
            (Chinese, false) => format!("已从本机清除 {copies} 个镜像副本，共 {bytes}。"),
        };
        let names = images.iter().map(|name| format!("  {name}"));
        [registry, engine].into_iter().chain(names).collect::<Vec<_>>().join("\n")
    }

    pub(crate) fn hint_save_again(self) -> String {
        self.pick(
            "the instance is as it was; once that is mended, `berth image retry` goes on from here",
            "实例没有变化；排除故障后可用 `berth image retry` 继续保存",
        )
        .to_owned()
    }

    pub(crate) fn save_given_up(self, name: &str) -> String {
        match self.0 {
            English => format!("`{name}` was deleted before it was saved"),
            Chinese => format!("`{name}` 在保存完成前已被删除"),
        }
    }

    pub(crate) fn size_of_image(self, size_bytes: u64, added_bytes: u64, layers: u32) -> String {
        let (all, added) = (size::display(size_bytes), size::display(added_bytes));
        match self.0 {
            English => format!("{all}, {added} of it new, in {layers} layers"),
            Chinese => format!("{all}，其中新增 {added}，共 {layers} 层"),
        }
    }

    pub(crate) fn changes(self, changes: &Changes) -> String {
        let (files, bytes, deleted) = (changes.files, size::display(changes.bytes), changes.deleted);
        match (self.0, changes.since) {
            (English, Since::Image) => {
                format!("since its image: {files} files new or changed, {bytes}; {deleted} removed")
            }
            (English, Since::LastSave) => {
                format!("since its last save: {files} files new or changed, {bytes}; {deleted} removed")
            }
            (Chinese, Since::Image) => {
                format!("与原镜像相比：新增或修改 {files} 个文件，共 {bytes}；删除 {deleted} 个")
            }
            (Chinese, Since::LastSave) => {
                format!("与上次保存相比：新增或修改 {files} 个文件，共 {bytes}；删除 {deleted} 个")
            }
        }
    }

    pub(crate) fn installed(self) -> String {
        self.pick("installed beyond the image:", "在原镜像之外安装：").to_owned()
    }

    pub(crate) fn removed(self) -> String {
        self.pick("removed from the image:", "已从原镜像中移除：").to_owned()
    }

    /// Whether it is on the platform's list, or is to be.
    pub(crate) fn platform_list(self, platform: bool, proposed: bool) -> &'static str {
        match (platform, proposed) {
            (true, _) => self.pick("on the list, for everyone", "已列入，所有人可用"),
            (false, true) => self.pick("proposed; an admin decides", "已提议，由管理员决定"),
            (false, false) => self.pick("not on the list", "未列入"),
        }
    }

    pub(crate) fn left_out(self) -> String {
        self.pick("left out:", "已排除：").to_owned()
    }

    pub(crate) fn not_in_images(self) -> String {
        self.pick("mounted, and so never in an image:", "挂载目录，不会进入镜像：").to_owned()
    }

    pub(crate) fn look_secret(self) -> String {
        self.pick(
            "these look like secrets; whoever may use the image can read them:",
            "以下文件疑似含有密钥，能使用此镜像的人都能读到：",
        )
        .to_owned()
    }

    /// Before somebody shares an image that was saved from `instance`, whose files are known.
    pub(crate) fn may_hold_secrets(self, instance: &str) -> String {
        match self.0 {
            English => format!(
                "these files of `{instance}` look like secrets, and the image may hold them; whoever may use it can read them:"
            ),
            Chinese => {
                format!("`{instance}` 中的以下文件疑似含有密钥，镜像中可能也有；能使用此镜像的人都能读到：")
            }
        }
    }
}
