import { test } from 'tap'
import { count, indexOf, lastIndexOf, replace, split, splitRight } from '../../../shared/templates/find.js'
import { Run } from '../../../shared/templates/run.js'
import { chance } from '../../faults/random.js'

test('searching with long needles finds what the language’s own search finds', async t => {
  const random = chance(7)
  const letters = (length: number) =>
    Array.from({ length }, () => (random.between(0, 9) === 0 ? 'b' : 'a')).join('')
  for (let round = 0; round < 500; round++) {
    const run = new Run([])
    const needle = letters(random.between(1, 400))
    const text =
      letters(random.between(0, 300)) + (random.between(0, 1) ? needle : '') + letters(random.between(0, 900))
    const from = random.between(0, 5)
    t.equal(indexOf(run, text, needle, from), text.indexOf(needle, from))
    t.equal(lastIndexOf(run, text, needle), text.lastIndexOf(needle))
    t.same(split(run, text, needle), text.split(needle))
    t.equal(count(run, text, needle), text.split(needle).length - 1)
    t.equal(replace(run, text, needle, 'X$&'), text.split(needle).join('X$&'))
  }
})

test('parts are cut from either end, as many as asked for', async t => {
  const run = new Run([])
  t.same(split(run, 'a,b,c', ',', 1), ['a', 'b,c'])
  t.same(splitRight(run, 'a,b,c', ',', 1), ['a,b', 'c'])
  t.same(split(run, '', ','), [''])
  t.equal(replace(run, 'aaa', 'a', 'b', 2), 'bba')
})
