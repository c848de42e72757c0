import type { Image, Instance, SavedImage } from '../api/types'

/** An image that was saved, or is being. */
export type Save = Image & { saved: SavedImage }

function isSave(image: Image): image is Save {
  return image.saved !== null && image.saved !== undefined
}

const time = (at: string) => new Date(at).getTime()

/**
 * What was saved from an instance, the newest first. An image knows it by the name that it had then, so those that are
 * older than the instance are of another one of that name.
 */
export function savesOf(images: readonly Image[], instance: Pick<Instance, 'name' | 'user' | 'created_at'>) {
  return images
    .filter(isSave)
    .filter(({ saved }) => saved.instance === instance.name && saved.user === instance.user)
    .filter(({ created_at: at }) => time(at) >= time(instance.created_at))
    .toSorted((one, other) => time(other.created_at) - time(one.created_at))
}

/** The newest image that is whole. */
export function lastSaved(saves: readonly Save[]): Save | undefined {
  return saves.find(({ saved }) => saved.state.state === 'ready')
}
