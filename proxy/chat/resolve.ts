import { validation } from '../../shared/errors/app-error.js'
import type { DirectoryEntry, TeamConnection, TeamModel } from '../directory/team.js'
import type { ChatCall } from './parse.js'

/** A call and the model that its name stands for; `model` is null when the team has none of that name. */
export interface Target {
  call: ChatCall
  caller: DirectoryEntry
  resolved: { model: TeamModel; connection: TeamConnection } | null
}

/** A target that the key may call, and that exists. */
export interface ScopedTarget {
  call: ChatCall
  caller: DirectoryEntry
  model: TeamModel
  connection: TeamConnection
}

/** Finds the model of the team's registry. Whether it exists is judged by the scope check, which comes first. */
export function resolveTarget(call: ChatCall, caller: DirectoryEntry): Target {
  const model = caller.team.modelByName.get(call.model)
  const connection = model && caller.team.connectionById.get(model.connectionId)
  return { call, caller, resolved: model && connection ? { model, connection } : null }
}

/** Spec 3, optimize, quotes this text for an unregistered model; a completion answers with the same. */
export const unregisteredModel = (name: string) =>
  validation(`Model '${name}' is not registered. Add it under Gateway → Models.`)
