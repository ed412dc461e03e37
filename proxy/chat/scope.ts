import { AppError } from '../../shared/errors/app-error.js'
import type { DirectoryEntry } from '../directory/team.js'
import { type ScopedTarget, type Target, unregisteredModel } from './resolve.js'

/**
 * Scope comes before existence: a model outside `allowedModels` is refused even when it is not registered, so that a
 * key learns nothing about what it may not call (spec 4, section 9 Gateway).
 *
 * @throws AppError MODEL_NOT_ALLOWED, or VALIDATION_ERROR for an unregistered model inside the scope.
 */
export function checkScope({ call, caller, resolved }: Target): ScopedTarget {
  const { allowedProviders } = caller.credential
  checkModel(call.model, caller)
  if (resolved === null) throw unregisteredModel(call.model)
  const { provider } = resolved.connection
  if (allowedProviders !== null && !allowedProviders.includes(provider)) {
    throw new AppError('MODEL_NOT_ALLOWED', `Provider '${provider}' is not allowed for this key.`)
  }
  return { call, caller, model: resolved.model, connection: resolved.connection }
}

/**
 * What can be judged by the model's name alone: also before the prompt and the tools that a call names are looked up,
 * so that a key learns nothing about those either.
 *
 * @throws AppError MODEL_NOT_ALLOWED.
 */
export function checkModel(model: string, { credential: { allowedModels } }: DirectoryEntry): void {
  if (allowedModels === null || allowedModels.includes(model)) return
  throw new AppError('MODEL_NOT_ALLOWED', `Model '${model}' is not allowed for this key.`)
}
