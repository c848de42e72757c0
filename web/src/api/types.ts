// The names by which the console speaks of the API's types. All of them are generated; none is written by hand.

import type { components } from './__generated__/schema'

type Schemas = components['schemas']

export type Me = Schemas['Me']
export type Instance = Schemas['Instance']
export type InstanceStatus = Schemas['Status']
export type InstanceAction = Schemas['Action']
export type CreateInstance = Schemas['CreateInstance']
export type App = Schemas['App']
export type AppState = Schemas['AppState']
export type Image = Schemas['Image']
export type Node = Schemas['Node']
export type Problem = Schemas['Problem']
export type ProblemCode = Schemas['Code']
export type Terminal = Schemas['Terminal']
export type ProcessExit = Schemas['Exit']
export type StreamMessage = Schemas['FromServer']
