import { first } from './first'
import { rest } from './rest'

export const resources = { ...first, ...rest }
