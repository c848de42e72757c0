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

  // A network that changes drops what is on its way. A page that lacks a file before it has drawn anything is loaded
  // again, a few times. What is missing later, `src/util/later.ts` asks for again.
  window.addEventListener(
    'error',
    function (event) {
      var file = event.target
      if (!(file instanceof HTMLScriptElement || file instanceof HTMLLinkElement)) return
      if (document.getElementById('root')?.hasChildNodes()) return
      try {
        var tries = Number(sessionStorage.getItem('berth.load-tries'))
        if (tries >= 5) return
        sessionStorage.setItem('berth.load-tries', String(tries + 1))
        // Longer each time: what changes may take seconds to come to rest.
        setTimeout(() => location.reload(), 300 * 2 ** tries)
      } catch {
        // Without storage nobody counts, and the page could be loaded for ever.
      }
    },
    true,
  )
})()
