import { test } from 'tap'
import { endpoints } from '../../../shared/contract/index.js'
import { startControlPlane } from '../../support/control-plane.js'

interface Operation {
  operationId: string
  security: Record<string, unknown>[]
  parameters: { name: string; in: string; required: boolean }[]
  requestBody?: object
  responses: Record<string, object>
}
interface Document {
  openapi: string
  paths: Record<string, Record<string, Operation>>
}

test('the OpenAPI 3.1 document holds every public endpoint and no internal one', async t => {
  const cp = await startControlPlane(t)
  const response = await cp.app.inject('/api/v1/openapi.json')
  t.match(response.headers['content-type'], 'application/json')
  const document = response.json<Document>()
  t.equal(document.openapi, '3.1.0')
  const listed = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map(method => `${method.toUpperCase()} ${path}`),
  )
  const wanted = endpoints
    .filter(endpoint => endpoint.access !== 'internal')
    .map(({ method, path }) => `${method} /api/v1${path.replace(/:(\w+)/g, '{$1}')}`)
  t.same(listed.sort(), wanted.sort())
  t.notOk(response.body.includes('/internal/'))
})

test('operation ids are unique, and every path parameter is declared', async t => {
  const cp = await startControlPlane(t)
  const document = (await cp.app.inject('/api/v1/openapi.json')).json<Document>()
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.values(methods).map(operation => ({ path, operation })),
  )
  const ids = operations.map(({ operation }) => operation.operationId)
  t.equal(new Set(ids).size, ids.length)
  for (const { path, operation } of operations) {
    const named = [...path.matchAll(/\{(\w+)\}/g)].map(match => match[1])
    const declared = operation.parameters.filter(parameter => parameter.in === 'path')
    t.same(declared.map(parameter => parameter.name).sort(), named.sort(), path)
    t.ok(operation.responses.default, path)
  }
})

test('the reader at /docs shows the document and loads nothing from elsewhere', async t => {
  const cp = await startControlPlane(t)
  const page = await cp.app.inject('/docs')
  t.equal(page.statusCode, 200)
  t.match(page.headers['content-type'], 'text/html')
  t.match(page.headers['content-security-policy'], "default-src 'self'")
  t.notMatch(page.body, /(src|href)="https?:/)
  const assets = [...page.body.matchAll(/(?:src|href)="([^"]+)"/g)].map(match => match[1] ?? '')
  t.ok(assets.length >= 3)
  for (const asset of assets) {
    const url = new URL(asset, 'http://agh.test/docs').pathname
    t.equal((await cp.app.inject(url)).statusCode, 200, url)
  }
  t.same((await cp.app.inject('/docs/json')).json(), (await cp.app.inject('/api/v1/openapi.json')).json())
})
