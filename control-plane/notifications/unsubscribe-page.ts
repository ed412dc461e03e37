import { createHash } from 'node:crypto'

/**
 * The page that the link of a mail opens. It is the same for every token and changes nothing: mail scanners open links
 * (spec 4, section 9). The button posts to the address of the page itself; without scripts the browser stays where it
 * is, because the answer has no body.
 */
const script = `document.querySelector('form').addEventListener('submit', async event => {
  event.preventDefault()
  const answer = await fetch(location.href, { method: 'POST', credentials: 'omit' }).catch(() => null)
  document.querySelector('p').textContent = answer?.ok
    ? 'Done. You will get no more mails of this kind.'
    : 'That did not work. Please try again in a moment.'
})`

export const unsubscribePage = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="robots" content="noindex, nofollow">
<title>Unsubscribe</title>
</head>
<body>
<h1>Unsubscribe</h1>
<p>Press the button to get no more mails of this kind from this team. It can be switched on again in the settings.</p>
<form method="post"><button type="submit">Unsubscribe</button></form>
<script>${script}</script>
</body>
</html>
`

const scriptHash = createHash('sha256').update(script).digest('base64')

export const unsubscribePageHeaders = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': `default-src 'none'; script-src 'sha256-${scriptHash}'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
  'x-robots-tag': 'noindex, nofollow',
  'cache-control': 'no-store',
  // The address holds the token.
  'referrer-policy': 'no-referrer',
}
