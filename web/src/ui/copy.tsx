import { ActionIcon, Code, Group, Tooltip } from '@mantine/core'
import { useTimeout } from '@mantine/hooks'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'

import { copyText } from '../util/clipboard'
import { IconCheck, IconCopy } from './icons'

interface ButtonProps {
  text: string
  /** What is copied, when several buttons stand close. */
  label?: string
}

export function CopyButton({ text, label }: ButtonProps) {
  const { t } = useTranslation()
  const [copied, setCopied] = useState(false)
  const { start } = useTimeout(() => setCopied(false), 2_000)
  const name = copied ? t('copied') : (label ?? t('copy'))
  const copy = async () => {
    if (await copyText(text)) {
      setCopied(true)
      start()
    }
  }
  return (
    <Tooltip label={name}>
      <ActionIcon variant="subtle" color="gray" aria-label={name} onClick={() => void copy()}>
        {copied ? <IconCheck size={16} /> : <IconCopy size={16} />}
      </ActionIcon>
    </Tooltip>
  )
}

/** A short text that people carry elsewhere: an id, a path, an image, a command. */
export function CopyField({ text, label, block }: ButtonProps & { block?: boolean }) {
  if (block) {
    return (
      <Group gap={4} wrap="nowrap" align="flex-start">
        <Code block className="breakable" flex={1} style={{ whiteSpace: 'pre-wrap' }}>
          {text}
        </Code>
        <CopyButton text={text} label={label} />
      </Group>
    )
  }
  return (
    <Group gap={2} wrap="nowrap" display="inline-flex" maw="100%">
      <Code className="breakable">{text}</Code>
      <CopyButton text={text} label={label} />
    </Group>
  )
}
