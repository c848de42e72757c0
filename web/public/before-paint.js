// Runs before the first paint, so that a dark page never flashes white. A file of its own and not inline, because the
// content security policy allows no inline scripts. The keys are those of src/theme.ts and src/i18n/language.ts.
;(function () {
  var scheme = null
  var language = null
  try {
    scheme = localStorage.getItem('berth.color-scheme')
    language = localStorage.getItem('berth.language')
  } catch {
    // Storage can be forbidden; the defaults serve.
  }
  if (scheme !== 'light' && scheme !== 'dark') {
    scheme = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light'
  }
  document.documentElement.setAttribute('data-mantine-color-scheme', scheme)
  if (language) document.documentElement.lang = language
})()
