// Everything that names an instance to an SSH client. The one place that knows the addresses of editors.

import type { SshDoor } from '../api/types'

export interface SshTarget {
  host: string
  port: number
  /** `alice+train`: who, and where to. */
  login: string
  /** What `~/.ssh/config` calls it. */
  alias: string
  slug: string
}

const SSH_PORT = 22

export function sshTarget(door: SshDoor, consoleHost: string, user: string, slug: string): SshTarget {
  return {
    host: door.host ?? consoleHost,
    port: door.port,
    login: `${user}+${slug}`,
    alias: `${slug}.berth`,
    slug,
  }
}

export function sshCommand({ host, port, login }: SshTarget): string {
  return port === SSH_PORT ? `ssh ${login}@${host}` : `ssh -p ${port} ${login}@${host}`
}

export function sshConfigBlock({ host, port, login, alias }: SshTarget): string {
  return [
    `Host ${alias}`,
    `  HostName ${host}`,
    `  Port ${port}`,
    `  User ${login}`,
    '  ServerAliveInterval 30',
  ].join('\n')
}

/** A line for `~/.ssh/known_hosts`, so that the first connection asks nothing. */
export function knownHostsLine({ host, port }: SshTarget, hostKey: string): string {
  return `${port === SSH_PORT ? host : `[${host}]:${port}`} ${hostKey}`
}

export function copyCommands({ host, port, login }: SshTarget): string {
  const [scp, rsync] = port === SSH_PORT ? ['', ''] : [`-P ${port} `, `-e 'ssh -p ${port}' `]
  return [
    `scp ${scp}-r ./code ${login}@${host}:/userhome/`,
    `rsync ${rsync}-az --info=progress2 ./code/ ${login}@${host}:/userhome/code/`,
  ].join('\n')
}

/** Opens a folder by VS Code's Remote-SSH; other editors of its family differ in the scheme alone. */
export function vscodeLink(
  scheme: 'vscode' | 'cursor',
  { host, port, login }: SshTarget,
  folder: string,
): string {
  const where = encodeURIComponent(`${login}@${host}${port === SSH_PORT ? '' : `:${port}`}`)
  return `${scheme}://vscode-remote/ssh-remote+${where}${folder}`
}

/** Opens JetBrains Gateway at its form for a new connection, filled in. */
export function jetbrainsLink({ host, port, login }: SshTarget, folder: string): string {
  const fields = { type: 'ssh', host, port: String(port), user: login, projectPath: folder, deploy: 'true' }
  return `jetbrains-gateway://connect#${new URLSearchParams(fields)}`
}

/** What the private half of a new pair is called as a file. */
export function pairFile(name: string): string {
  const safe = name
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '')
  return `berth-${safe === '' || safe === 'berth' ? 'key' : safe}`
}

/** Puts the downloaded file where SSH clients look, readable by its owner alone. */
export function placePairCommand(file: string): string {
  return `mkdir -p ~/.ssh && mv ~/Downloads/${file} ~/.ssh/ && chmod 600 ~/.ssh/${file}`
}
