import { Button, Text } from '@mantine/core'
import { useLayoutEffect, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'

import type { Piece } from '../util/log-search'
import { IconArrowDown } from './icons'
import classes from './log-view.module.css'

interface Props {
  label: string
  text: string
  wrap: boolean
  /** What to mark, cut out of `text`; `current` is the match to show. */
  pieces?: Piece[]
  current?: number
}

/** How near the end counts as the end, in pixels. */
const NEAR = 24

/** Lines of plain text that stay at their end while more arrive, until the reader scrolls up. */
export function LogView({ label, text, wrap, pieces, current }: Props) {
  const { t } = useTranslation('streams')
  const box = useRef<HTMLDivElement>(null)
  const [atEnd, setAtEnd] = useState(true)
  const toEnd = () => {
    if (box.current) box.current.scrollTop = box.current.scrollHeight
    setAtEnd(true)
  }
  // After every drawing, whatever caused it. Whoever searches looks at what was found, not at the end.
  useLayoutEffect(() => {
    if (atEnd && current === undefined && box.current) box.current.scrollTop = box.current.scrollHeight
  })
  useLayoutEffect(() => {
    if (current === undefined) return
    box.current?.querySelector(`[data-match="${current}"]`)?.scrollIntoView({ block: 'center' })
  }, [current])
  return (
    <div className={classes.frame}>
      <div
        ref={box}
        className={classes.box}
        role="region"
        aria-label={label}
        // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must scroll by keyboard too
        tabIndex={0}
        onScroll={({ currentTarget: { scrollHeight, scrollTop, clientHeight } }) =>
          setAtEnd(scrollHeight - scrollTop - clientHeight < NEAR)
        }
      >
        {text === '' ? (
          <Text c="dimmed" size="sm">
            {t('logs.empty')}
          </Text>
        ) : (
          <pre className={classes.lines} data-wrap={wrap || undefined}>
            {pieces
              ? pieces.map((piece, index) =>
                  piece.match === undefined ? (
                    piece.text
                  ) : (
                    <mark
                      // oxlint-disable-next-line react/no-array-index-key -- pieces have no other name
                      key={index}
                      data-match={piece.match}
                      className={classes.match}
                      data-current={piece.match === current || undefined}
                    >
                      {piece.text}
                    </mark>
                  ),
                )
              : text}
          </pre>
        )}
      </div>
      {!atEnd && (
        <Button
          className={classes.jump}
          size="xs"
          variant="default"
          leftSection={<IconArrowDown size={14} />}
          onClick={toEnd}
        >
          {t('logs.to_end')}
        </Button>
      )}
    </div>
  )
}
