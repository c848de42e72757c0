// The `berth` command with the same effect as a form: it teaches the command line to those who start in a browser.

import type { AddUser, CreateInstance, QuotaLimits, SaveInstance } from '../api/types'
import { GIB, MIB } from './format'
import { quoteWord } from './shell-words'

function size(bytes: number): string {
  if (bytes % GIB === 0) return `${bytes / GIB}G`
  if (bytes % MIB === 0) return `${bytes / MIB}M`
  return String(bytes)
}

export function createCommand(request: CreateInstance): string {
  const words = ['berth', 'create', quoteWord(request.name || 'NAME')]
  if (request.image) words.push('--image', quoteWord(request.image))
  words.push('--cpus', String(request.cpus), '--memory', size(request.memory_bytes))
  if (request.shm_bytes) words.push('--shm', size(request.shm_bytes))
  if (request.gpus) words.push('--gpus', String(request.gpus))
  if (request.gpu_model) words.push('--gpu-type', quoteWord(request.gpu_model))
  if (request.auto_start) words.push('--auto-start')
  for (const [key, value] of Object.entries(request.env ?? {}))
    words.push('--env', quoteWord(`${key}=${value}`))
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

/** The same request by the API, for scripts without the `berth` command. */
export function createRequest(origin: string, request: CreateInstance): string {
  return [
    `curl -X POST ${origin}/api/v1/instances \\`,
    `  -H "Authorization: Bearer $BERTH_TOKEN" -H 'Content-Type: application/json' \\`,
    `  -d ${quoteWord(JSON.stringify(request))}`,
  ].join('\n')
}

export function quotaCommand(owner: { kind: string; name: string }, limits: QuotaLimits): string {
  const words = ['berth', 'quota', 'set', owner.kind, quoteWord(owner.name)]
  const { cpus, memory_bytes: memory, gpus, gpus_by_model: models = {}, instances, jobs } = limits
  if (typeof cpus === 'number') words.push('--cpus', String(cpus))
  if (typeof memory === 'number') words.push('--memory', size(memory))
  if (typeof gpus === 'number') words.push('--gpus', String(gpus))
  for (const [model, count] of Object.entries(models)) words.push('--gpus-of', quoteWord(`${model}=${count}`))
  if (typeof instances === 'number') words.push('--instances', String(instances))
  if (typeof jobs === 'number') words.push('--jobs', String(jobs))
  return words.join(' ')
}

export function submitCommand(file: string, name?: string): string {
  const words = ['berth', 'submit', '-', ...(name ? ['--name', quoteWord(name)] : [])]
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
