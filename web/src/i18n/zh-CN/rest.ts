// The words of what is fetched later.

import admin from './admin.json'
import cluster from './cluster.json'
import create from './create.json'
import help from './help.json'
import metrics from './metrics.json'
import notes from './notes.json'
import settings from './settings.json'
import ssh from './ssh.json'
import streams from './streams.json'

export const rest = { admin, cluster, create, help, metrics, notes, settings, ssh, streams }
