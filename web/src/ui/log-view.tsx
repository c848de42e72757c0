import { Button, Text } from '@mantine/core'
import { memo, useLayoutEffect, useMemo, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'

import { linesOf, type Piece } from '../util/log-search'
import { IconArrowDown } from './icons'
import classes from './log-view.module.css'

/** Links to lines, where those can be counted. */
export interface LineLinks {
  /** The line that is looked at. */
  chosen?: number
  href: (line: number) => string
  onChoose: (line: number) => void
}

interface Props {
  label: string
  wrap: boolean
  /** The text, cut at what is to be marked; `current` is the match to show. */
  pieces: Piece[]
  /** The number of the first line. */
  first?: number
  /** More comes after these lines: their end is not the log's. */
  goesOn?: boolean
  current?: number
  links?: LineLinks
}

/** How near the end counts as the end, in pixels. */
const NEAR = 24

/** Lines of plain text that stay at their end while more arrive, until the reader scrolls up. */
export function LogView({ label, wrap, pieces, first = 1, goesOn = false, current, links }: Props) {
  const { t } = useTranslation('streams')
  const box = useRef<HTMLDivElement>(null)
  const [atEnd, setAtEnd] = useState(true)
  const lines = useMemo(() => linesOf(pieces), [pieces])
  const chosen = links?.chosen
  // Whoever looks for something looks at what was found, not at the end.
  const looking =
    current !== undefined || (chosen !== undefined && chosen >= first && chosen < first + lines.length)
  const toEnd = () => {
    if (box.current) box.current.scrollTop = box.current.scrollHeight
    setAtEnd(true)
  }
  // After every drawing, whatever caused it.
  useLayoutEffect(() => {
    if (atEnd && !looking && box.current) box.current.scrollTop = box.current.scrollHeight
  })
  useLayoutEffect(() => {
    if (current === undefined) return
    box.current?.querySelector(`[data-match="${current}"]`)?.scrollIntoView({ block: 'center' })
  }, [current])
  useLayoutEffect(() => {
    // Lines before it may have come or gone.
    if (chosen === undefined || chosen < first || !looking) return
    box.current?.querySelector(`[data-line="${chosen}"]`)?.scrollIntoView({ block: 'center' })
  }, [chosen, looking, first])
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
        {lines.length === 1 && lines[0]?.length === 0 ? (
          <Text c="dimmed" size="sm">
            {t('logs.empty')}
          </Text>
        ) : (
          <pre className={classes.lines} data-wrap={wrap || undefined}>
            {lines.map((line, index) => (
              <Line
                // oxlint-disable-next-line react/no-array-index-key -- a line has no other name than its number
                key={first + index}
                number={first + index}
                line={line}
                current={
                  line.some(({ match }) => match !== undefined && match === current) ? current : undefined
                }
                chosen={chosen === first + index}
                links={links}
              />
            ))}
          </pre>
        )}
      </div>
      {!atEnd && !goesOn && (
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

interface LineProps {
  number: number
  line: Piece[]
  current?: number
  chosen: boolean
  links?: LineLinks
}

function sameLine(before: LineProps, after: LineProps): boolean {
  return (
    before.current === after.current &&
    before.chosen === after.chosen &&
    (before.links === undefined) === (after.links === undefined) &&
    before.line.length === after.line.length &&
    before.line.every(
      ({ text, match }, index) => text === after.line[index]?.text && match === after.line[index]?.match,
    )
  )
}

/** Drawn again only when it is another one: a log has thousands, and new ones come all the time. */
const Line = memo(function Line({ number, line, current, chosen, links }: LineProps) {
  const { t } = useTranslation('streams')
  return (
    <div className={classes.line} data-line={number} data-chosen={chosen || undefined}>
      {links && (
        <a
          className={classes.number}
          href={links.href(number)}
          aria-label={t('logs.line', { number })}
          // A log has too many of them to walk through; the address takes the number too.
          tabIndex={-1}
          onClick={(event) => {
            if (event.ctrlKey || event.metaKey || event.shiftKey) return
            event.preventDefault()
            links.onChoose(number)
          }}
        >
          {number}
        </a>
      )}
      <span>
        {line.map(({ text, match }, index) =>
          match === undefined ? (
            text
          ) : (
            <mark
              // oxlint-disable-next-line react/no-array-index-key -- pieces have no other name
              key={index}
              data-match={match}
              className={classes.match}
              data-current={match === current || undefined}
            >
              {text}
            </mark>
          ),
        )}
      </span>
    </div>
  )
}, sameLine)
