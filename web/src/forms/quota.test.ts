import { expect, test } from 'vitest'

import { limitsFrom, quotaFrom, quotaValues } from './quota'

test('limits come back as they were, those of models too', () => {
  const limits = { gpus: 4, memory_bytes: 8 * 2 ** 30, gpus_by_model: { A100: 2 } }
  expect(limitsFrom(quotaValues(limits))).toEqual(limits)
})

test('an emptied model has no limit', () => {
  const values = quotaValues({ gpus_by_model: { A100: 2, P100: 1 } })
  expect(limitsFrom({ ...values, models: { ...values.models, A100: '' } }).gpus_by_model).toEqual({ P100: 1 })
})

test('what is raised for a while leaves the rest as it is', () => {
  const quota = quotaFrom({ limits: { gpus: 1 } }, quotaValues({ gpus: 4 }), 12, 0)
  expect(quota).toEqual({
    limits: { gpus: 1 },
    raise: { limits: { gpus: 4 }, until: '1970-01-01T12:00:00.000Z' },
  })
})
