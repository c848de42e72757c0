// The `berth` command with the same effect as a form: it teaches the command line to those who start in a browser.

import type {
  AddToken,
  AddUser,
  ChangeImage,
  ChangeUser,
  CreateInstance,
  CreateTensorboard,
  QuotaLimits,
  SaveInstance,
  SubmitJob,
} from '../api/types'
import { GIB, HOUR_S, MIB } from './format'
import { originForPrograms } from './own-address'
import { quoteWord } from './shell-words'

function size(bytes: number): string {
  if (bytes % GIB === 0) return `${bytes / GIB}G`
  if (bytes % MIB === 0) return `${bytes / MIB}M`
  return String(bytes)
}

function time(seconds: number): string {
  if (seconds === 0) return '0'
  if (seconds % HOUR_S === 0) return `${seconds / HOUR_S}h`
  return seconds % 60 === 0 ? `${seconds / 60}m` : `${seconds}s`
}

export function createCommand(request: CreateInstance): string {
  const words = ['berth', 'create', quoteWord(request.name || 'NAME')]
  if (request.image) words.push('--image', quoteWord(request.image))
  words.push('--cpus', String(request.cpus), '--memory', size(request.memory_bytes))
  if (request.shm_bytes) words.push('--shm', size(request.shm_bytes))
  if (request.gpus) words.push('--gpus', String(request.gpus))
  if (request.gpu_model) words.push('--gpu-type', quoteWord(request.gpu_model))
  if (request.cluster) words.push('--cluster', quoteWord(request.cluster))
  if (request.pool) words.push('--pool', quoteWord(request.pool))
  if (request.auto_start) words.push('--auto-start')
  for (const [key, value] of Object.entries(request.env ?? {}))
    words.push('--env', quoteWord(`${key}=${value}`))
  for (const { name, env, file } of request.secrets ?? []) {
    if (file) words.push('--secret', quoteWord(`${name}:file`))
    if (env || !file) words.push('--secret', quoteWord(env && env !== name ? `${name}=${env}` : name))
  }
  if (request.command?.length) words.push('--', ...request.command.map(quoteWord))
  return words.join(' ')
}

export function shellCommand(name: string): string {
  return `berth exec -t ${quoteWord(name)} -- sh`
}

export function logsCommand(name: string): string {
  return `berth logs -f ${quoteWord(name)}`
}

export function openCommand(name: string, app: string): string {
  return `berth open ${quoteWord(name)} ${app}`
}

export function forwardCommand(name: string, port: number): string {
  return `berth port-forward ${quoteWord(name)} ${port}`
}

/** How a script uses a token: by the environment, so that it stands in no list of processes. */
export function tokenCommand(origin: string): string {
  return `export BERTH_URL=${origin} BERTH_TOKEN=…\nberth ls`
}

export function addUserCommand({ name, role, group }: AddUser): string {
  const words = ['berth', 'user', 'add', quoteWord(name || 'NAME')]
  if (role) words.push('--role', role)
  if (group) words.push('--group', quoteWord(group))
  return words.join(' ')
}

export function limitJobCommand(job: string, seconds: number): string {
  return `berth change ${quoteWord(job)} --time-limit ${time(seconds)}`
}

/** One line for each thing that is changed; none for what only the API can change. */
export function changeUserCommand(name: string, { role, group }: ChangeUser): string {
  const lines = [
    role && `berth user role ${quoteWord(name)} ${role}`,
    group && `berth user group ${quoteWord(name)} ${quoteWord(group)}`,
  ]
  return lines.filter(Boolean).join('\n')
}

const undo = (is: boolean) => (is ? '' : ' --undo')

export function changeImageCommand(image: string, wanted: ChangeImage): string | undefined {
  const { name, tag, share, message, proposed, platform } = wanted
  if (typeof message === 'string') return undefined
  const word = quoteWord(image)
  const lines = [
    share && `berth image share ${word} ${share}`,
    typeof proposed === 'boolean' && `berth image propose ${word}${undo(proposed)}`,
    typeof platform === 'boolean' && `berth image promote ${word}${undo(platform)}`,
    // A word alone is a tag. Last: after it the image has another name.
    (name || tag) && `berth image mv ${word} ${quoteWord(name ? `${name}:${tag ?? ''}` : `${tag}`)}`,
  ]
  return lines.filter(Boolean).join('\n')
}

/** The same request by the API, for scripts without the `berth` command. */
export function apiRequest(method: 'POST' | 'PUT' | 'PATCH', path: string, body: unknown): string {
  return [
    `curl -X ${method} ${originForPrograms(window.location)}/api/v1${path} \\`,
    `  -H "Authorization: Bearer $BERTH_TOKEN" -H 'Content-Type: application/json' \\`,
    `  -d ${quoteWord(JSON.stringify(body))}`,
  ].join('\n')
}

export function quotaCommand(
  owner: { kind: string; name: string },
  limits: QuotaLimits,
  hours: number | null = null,
): string {
  const words = ['berth', 'quota', 'set', owner.kind, quoteWord(owner.name)]
  const {
    cpus,
    memory_bytes: memory,
    gpus,
    gpus_by_model: models = {},
    instances,
    jobs,
    image_bytes: images,
  } = limits
  if (typeof cpus === 'number') words.push('--cpus', String(cpus))
  if (typeof memory === 'number') words.push('--memory', size(memory))
  if (typeof gpus === 'number') words.push('--gpus', String(gpus))
  for (const [model, count] of Object.entries(models)) words.push('--gpus-of', quoteWord(`${model}=${count}`))
  if (typeof instances === 'number') words.push('--instances', String(instances))
  if (typeof jobs === 'number') words.push('--jobs', String(jobs))
  if (typeof images === 'number') words.push('--images', size(images))
  if (hours !== null) words.push('--for', `${hours}h`)
  return words.join(' ')
}

export function submitCommand({ file, name, cluster, pool }: SubmitJob): string {
  const words = ['berth', 'submit', '-']
  if (name) words.push('--name', quoteWord(name))
  if (cluster) words.push('--cluster', quoteWord(cluster))
  if (pool) words.push('--pool', quoteWord(pool))
  return `${words.join(' ')} <<'EOF'\n${file.trimEnd()}\nEOF`
}

export function saveCommand(instance: string, wanted: SaveInstance): string {
  const { name, tag, message, exclude, share, stop } = wanted
  const words = ['berth', 'save', quoteWord(instance)]
  // A word alone is a tag; a name with nothing behind its colon gets the tag that the gateway makes.
  if (name || tag) words.push(quoteWord(name ? `${name}:${tag ?? ''}` : `${tag}`))
  for (const path of exclude ?? []) words.push('--exclude', quoteWord(path))
  if (exclude?.length === 0) words.push('--everything')
  if (message) words.push('--message', quoteWord(message))
  if (share && share !== 'me') words.push('--share', share)
  if (stop) words.push('--stop')
  return words.join(' ')
}

export function tokenNewCommand({ name, scope, days }: AddToken): string {
  const words = ['berth', 'token', 'new', quoteWord(name || 'NAME')]
  if (scope === 'read') words.push('--scope', 'read')
  if (typeof days === 'number') words.push('--days', String(days))
  return words.join(' ')
}

/** The value is asked for: it stands in no list of processes and in no history. */
export function secretCommand(
  name: string,
  registry: { host: string; user: string } | null,
  site: boolean,
): string {
  const words = ['berth', 'secret', 'set', quoteWord(name || 'NAME')]
  if (registry) words.push('--registry', quoteWord(registry.host), '--user', quoteWord(registry.user))
  if (site) words.push('--site')
  return words.join(' ')
}

export function addKeyCommand(name: string): string {
  return ['berth ssh-key add ~/.ssh/id_ed25519.pub', ...(name ? ['--name', quoteWord(name)] : [])].join(' ')
}

export function newKeyCommand(name: string): string {
  return `berth ssh-key new ${quoteWord(name || 'NAME')}`
}

export function addNamedCommand(kind: 'group' | 'workspace', name: string): string {
  return `berth ${kind} add ${quoteWord(name || 'NAME')}`
}

export function tensorboardCommand({ folder, cluster }: CreateTensorboard): string {
  const words = ['berth', 'tensorboard', quoteWord(folder || 'FOLDER')]
  if (cluster) words.push('--cluster', quoteWord(cluster))
  return words.join(' ')
}
