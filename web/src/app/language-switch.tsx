import { SegmentedControl, Tooltip, VisuallyHidden } from '@mantine/core'
import { useTranslation } from 'react-i18next'

import { changeLanguage, currentLanguage, LANGUAGES } from '../i18n/language'

export function LanguageSwitch() {
  const { t } = useTranslation()
  return (
    <SegmentedControl
      size="xs"
      aria-label={t('language')}
      value={currentLanguage()}
      onChange={(language) => void changeLanguage(language)}
      data={LANGUAGES.map(({ code, short, name }) => ({
        value: code,
        label: (
          <Tooltip label={name}>
            <span lang={code}>
              <span aria-hidden>{short}</span>
              <VisuallyHidden>{name}</VisuallyHidden>
            </span>
          </Tooltip>
        ),
      }))}
    />
  )
}
