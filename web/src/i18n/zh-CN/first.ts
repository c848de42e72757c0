// What is on the screen before any part is fetched: the shell, Home, and what goes wrong there.

import apps from './apps.json'
import common from './common.json'
import errors from './errors.json'
import home from './home.json'
import images from './images.json'
import instances from './instances.json'
import jobs from './jobs.json'
import session from './session.json'

export const first = { apps, common, errors, home, images, instances, jobs, session }
