import apps from './apps.json'
import common from './common.json'
import create from './create.json'
import errors from './errors.json'
import instances from './instances.json'
import session from './session.json'
import streams from './streams.json'

export const resources = { apps, common, create, errors, instances, session, streams }
