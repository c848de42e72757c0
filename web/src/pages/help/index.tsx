import { Anchor, Code, Group, Stack, Text } from '@mantine/core'
import { Fragment } from 'react'
import { useTranslation } from 'react-i18next'

import { PageTitle } from '../../ui/page-title'
import { Section } from '../../ui/section'

const TOPICS = [
  'begin',
  'files',
  'apps',
  'tensorboard',
  'ssh',
  'images',
  'jobs',
  'queue',
  'line',
  'gpus',
  'secrets',
  'trouble',
] as const

/** What one has to know to work here, without leaving the site. */
export function HelpPage() {
  const { t } = useTranslation('help')
  return (
    <Stack maw={760}>
      <PageTitle>{t('title')}</PageTitle>
      <Words text={t('text')} />
      <Group component="nav" gap="md" aria-label={t('contents')}>
        {TOPICS.map((topic) => (
          <Anchor key={topic} href={`#${topic}`} size="sm">
            {t(`topic.${topic}.title`)}
          </Anchor>
        ))}
      </Group>
      {TOPICS.map((topic) => (
        <div key={topic} id={topic} style={{ scrollMarginTop: 72 }}>
          <Section title={t(`topic.${topic}.title`)}>
            {t(`topic.${topic}.text`)
              .split('\n')
              .map((paragraph) => (
                <Words key={paragraph} text={paragraph} />
              ))}
          </Section>
        </div>
      ))}
      <Anchor href="/notices.txt" size="sm">
        {t('notices')}
      </Anchor>
    </Stack>
  )
}

/** A paragraph with `commands` and **words of the console** in it. */
function Words({ text }: { text: string }) {
  return (
    <Text>
      {text.split(/(`[^`]+`|\*\*[^*]+\*\*)/).map((part, index) => {
        const key = `${index}:${part}`
        if (part.startsWith('`')) return <Code key={key}>{part.slice(1, -1)}</Code>
        if (part.startsWith('**')) return <strong key={key}>{part.slice(2, -2)}</strong>
        return <Fragment key={key}>{part}</Fragment>
      })}
    </Text>
  )
}
