import admin from './admin.json'
import apps from './apps.json'
import cluster from './cluster.json'
import common from './common.json'
import create from './create.json'
import errors from './errors.json'
import help from './help.json'
import home from './home.json'
import images from './images.json'
import instances from './instances.json'
import jobs from './jobs.json'
import metrics from './metrics.json'
import notes from './notes.json'
import session from './session.json'
import settings from './settings.json'
import ssh from './ssh.json'
import streams from './streams.json'

export const resources = {
  admin,
  apps,
  cluster,
  common,
  create,
  errors,
  help,
  home,
  images,
  instances,
  jobs,
  metrics,
  notes,
  session,
  settings,
  ssh,
  streams,
}
