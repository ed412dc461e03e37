import { test } from 'tap'
import { nanoFromUsd, usdFromNano, usdText } from '../../../shared/money/nano.js'

test('money travels between nano-dollars and USD without losing a nano-dollar', async t => {
  for (const nano of [0, 1, 999_999_999, 1_234_567_890, 9_000_000_000_000_000]) {
    t.equal(nanoFromUsd(usdFromNano(nano)), nano)
  }
})

test('a header shows USD as a plain decimal, never with an exponent', async t => {
  t.equal(usdText(0), '0')
  t.equal(usdText(1), '0.000000001')
  t.equal(usdText(1_500_000_000), '1.5')
  t.equal(usdText(2_000_000_000), '2')
})
