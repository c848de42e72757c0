import { expect, test } from 'vitest'

import { resources } from '../i18n/en'
import { ACTS } from './audit-acts'

test('every act that can be searched for has a word, and every word an act', () => {
  const words = Object.keys(resources.admin.act)
  expect(ACTS.map((act) => act.replaceAll('.', '_')).toSorted()).toEqual(words.toSorted())
})
