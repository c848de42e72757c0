import i18next from 'i18next'
import { beforeAll, describe, expect, test } from 'vitest'

import { resources as english } from '../i18n/en'
import { resources as chinese } from '../i18n/zh-CN'
import { isPending, preparingText } from './preparing'
import type { PreparingStep } from './types'

beforeAll(() =>
  i18next.init({
    lng: 'en',
    defaultNS: 'common',
    resources: { en: english, 'zh-CN': chinese },
    interpolation: { escapeValue: false },
  }),
)

describe('a step is said with its minutes in both languages', () => {
  const check = (step: PreparingStep, en: string, zh: string) =>
    test(en, () => {
      expect(preparingText(step, i18next.getFixedT('en', 'common'))).toBe(en)
      expect(preparingText(step, i18next.getFixedT('zh-CN', 'common'))).toBe(zh)
    })
  check(
    { what: 'tools', state: 'waiting', seconds_left: 350 },
    'VS Code is being prepared, about 6 minutes left.',
    'VS Code 正在准备中，约剩 6 分钟。',
  )
  check(
    { what: 'base', state: 'working', seconds_left: 70 },
    'The default image is being prepared; instances can be created from it when it is ready, about 1 minute left.',
    '默认镜像正在准备中；就绪后可用它创建实例，约剩 1 分钟。',
  )
  check(
    { what: 'lab', state: 'working', seconds_left: 1 },
    'The JupyterLab image is being prepared, about 1 minute left.',
    'JupyterLab 镜像正在准备中，约剩 1 分钟。',
  )
  check(
    { what: 'desktop', state: 'working', seconds_left: 0 },
    'The desktop image is being prepared.',
    '桌面镜像正在准备中。',
  )
  check({ what: 'tools', state: 'waiting' }, 'VS Code is being prepared.', 'VS Code 正在准备中。')
  check({ what: 'base', state: 'done' }, 'The default image is ready.', '默认镜像已就绪。')
  check(
    { what: 'tools', state: 'failed' },
    'VS Code could not be prepared; an admin finds the reason in logs/images.log.',
    'VS Code 未能准备好；管理员可在 logs/images.log 中查看原因。',
  )
})

test('only steps that still run or wait are pending', () => {
  const states = ['waiting', 'working', 'done', 'failed'] as const
  expect(states.filter((state) => isPending({ what: 'tools', state }))).toEqual(['waiting', 'working'])
})
