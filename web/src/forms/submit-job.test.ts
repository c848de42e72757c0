import { describe, expect, test } from 'vitest'

import { fileFrom, startingJob, valuesFrom } from './submit-job'

const job = { ...startingJob('localhost/berth/base:latest'), name: 'train' }

describe('a form and its file say the same', () => {
  const check = (what: string, values: typeof job) =>
    test(what, () => expect(valuesFrom(fileFrom(values))).toEqual(values))
  check('as it begins', job)
  check('with all that can be said', {
    ...job,
    command: 'set -e\npython train.py --name "a: b"\n',
    cpus: 2.5,
    gpus: 4,
    tasks: 2,
    limitHours: 1.5,
    retries: 3,
  })
  check('in Chinese', { ...job, command: 'echo 你好' })
})

describe('a file that says more than the form is left alone', () => {
  const check = (what: string, file: string) => test(what, () => expect(valuesFrom(file)).toBeNull())
  check('another language', '{"jobName": "a", "taskRoles": []}')
  check('a key of its own', `${fileFrom(job)}gpu_model: A100\n`)
  check('a comment', `# mine\n${fileFrom(job)}`)
  check('no YAML at all', 'name: [')
})
