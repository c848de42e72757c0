// Other words by which the command palette finds things: those of the other language, and those that people bring along
// from the platforms that they used before. The same in both languages, so they are no translation.

import type { Place } from '../app/navigation'
import type { AdminSection, SettingsSection } from '../util/path-builder'

export const PLACES: Readonly<Record<Place['key'], string>> = {
  home: 'home dashboard 首页 主页 工作台',
  instances:
    'instances notebook dsw dev environment 实例 开发环境 交互式建模 容器 notebook服务 即时改码 网页SSH 远程桌面 高级服务',
  jobs: 'jobs tasks dlc training batch 任务 作业 作业管理 任务列表 任务管理 训练任务 训练 我的作业',
  queue: 'queue waiting 排队 队列 等待',
  images: 'images docker registry 镜像 镜像管理 镜像仓库',
  cluster: 'cluster gpu nodes resources 集群 资源 节点 显卡 slot 集群概览',
  settings: 'settings preferences account 设置 账号 个人中心',
  admin: 'administration admin 管理 后台 系统管理',
}

export const SETTINGS: Readonly<Record<SettingsSection, string>> = {
  profile: 'profile account 个人信息 账号',
  appearance: 'appearance theme dark language 外观 主题 语言 深色',
  'ssh-keys': 'ssh keys public key 公钥 密钥 远程连接',
  tokens: 'tokens api 访问令牌 令牌',
  secrets: 'secrets registry login 密钥 凭据',
  security: 'security password 密码 修改密码 安全',
  activity: 'activity audit 操作记录 日志',
}

export const ADMIN: Readonly<Record<AdminSection, string>> = {
  users: 'users people accounts 用户 人员 账号管理',
  groups: 'groups quotas workspaces 用户组 配额 虚拟集群',
  nodes: 'nodes machines servers 节点 机器 服务器',
  instances: 'all instances 全部实例',
  jobs: 'all jobs 全部任务 全部作业',
  images: 'all images registry 镜像管理',
  announcements: 'announcements rules 公告 通知 使用规则',
  usage: 'usage gpu hours accounting 用量 统计 计费 机时',
  audit: 'audit log 操作日志 审计',
  health: 'health status 健康 状态 监控',
  settings: 'settings configuration 设置 配置',
}

export const COMMANDS = {
  help: 'help docs manual faq 帮助 文档 手册 常见问题',
  newInstance: 'create new instance notebook dsw 创建 新建 实例 开发环境',
  newJob: 'submit new job dlc 提交 新建 创建 任务 作业 提交作业',
  tensorboard: 'new tensorboard board curves 可视化 曲线 日志监控',
  shortcuts: 'keyboard shortcuts keys hotkeys 快捷键 键盘',
  signOut: 'sign out log out logout exit 退出登录 注销 登出',
  language: 'language 语言 中文 english',
  appearance: 'appearance theme dark light 外观 主题 深色 浅色 夜间',
} as const
