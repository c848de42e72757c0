import { Popover, Progress, Text, UnstyledButton } from '@mantine/core'
import type { TFunction } from 'i18next'
import { useTranslation } from 'react-i18next'

import type { ClusterCard, Gpu } from '../../api/types'
import { CopyField } from '../../ui/copy'
import { type Fact, Facts } from '../../ui/facts'
import { TimeAgo } from '../../ui/time-ago'
import { formatBytes } from '../../util/format'
import classes from './card-cell.module.css'

interface Props {
  card: ClusterCard
  /** How it is doing, where that is known. */
  gpu: Gpu | undefined
  number: number
}

/** One GPU: who has it and how busy it is, in words and colour; all that is known of it at a click. */
export function CardCell({ card, gpu, number }: Props) {
  const { t } = useTranslation('cluster')
  const color = card.healthy ? (card.holder ? 'blue' : 'green') : 'red'
  const who = card.healthy ? (card.holder ? (card.holder.user ?? t('taken')) : t('free')) : t('unhealthy')
  return (
    <Popover position="bottom" withArrow width={300} trapFocus returnFocus>
      <Popover.Target>
        <UnstyledButton
          className={classes.cell}
          style={{ borderInlineStartColor: `var(--mantine-color-${color}-filled)` }}
          aria-label={t('card', { number, model: card.model, who })}
        >
          <Text size="xs" c="dimmed" className="breakable">{`${number} · ${card.model}`}</Text>
          <Text size="sm" fw={600} className="breakable">
            {who}
          </Text>
          {gpu && (
            <>
              <Progress value={gpu.busy} size="sm" aria-label={t('busy')} />
              <Text size="xs" className="numbers">
                {t('busy_now', { busy: gpu.busy })}
              </Text>
            </>
          )}
        </UnstyledButton>
      </Popover.Target>
      <Popover.Dropdown>
        <Facts labels="42%" facts={factsOf(card, gpu, t)} />
      </Popover.Dropdown>
    </Popover>
  )
}

function factsOf(card: ClusterCard, gpu: Gpu | undefined, t: TFunction<'cluster'>): Fact[] {
  const facts: Fact[] = [[t('model'), card.model]]
  if (gpu) {
    facts.push([t('busy'), t('busy_now', { busy: gpu.busy })])
    facts.push([
      t('card_memory'),
      t('of', { held: formatBytes(gpu.memory_used_bytes), all: formatBytes(gpu.memory_bytes) }),
    ])
    if (typeof gpu.temperature === 'number') {
      facts.push([t('temperature'), t('degrees', { degrees: gpu.temperature })])
    }
    facts.push([t('processes'), String(gpu.processes)])
    if (gpu.holder) facts.push([t('holder'), `${gpu.holder.user} · ${gpu.holder.name}`])
  }
  if (card.holder) facts.push([t('since'), <TimeAgo key="since" at={card.holder.since} />])
  facts.push([t('uuid'), <CopyField key="uuid" text={card.id} />])
  return facts
}
