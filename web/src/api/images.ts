// Saved images: reading, saving, sharing, and keeping the cache true while events arrive.

import { type QueryClient, queryOptions } from '@tanstack/react-query'

import { api, dataOf } from './client'
import { readAgain, readAgainIfUnderWay } from './read-again'
import { imagesQuery } from './site'
import type { CollectedImages, ChangeImage, Changes, Image, Recipe, SaveInstance } from './types'

/** What a save would put into an image. Walking the files takes a while. */
export function changesQuery(instance: string, exclude?: readonly string[]) {
  return queryOptions({
    queryKey: ['changes', instance, exclude ?? null],
    queryFn: async ({ signal }): Promise<Changes> =>
      dataOf(
        await api.GET('/api/v1/instances/{name}/changes', {
          params: { path: { name: instance }, query: exclude ? { exclude: named(exclude) } : {} },
          signal,
        }),
      ),
    staleTime: 0,
    gcTime: 0,
    refetchInterval: false,
    refetchOnWindowFocus: false,
  })
}

/** Paths as a query names them: an empty one says that nothing is left out. */
function named(exclude: readonly string[]): string[] {
  return exclude.length === 0 ? [''] : [...exclude]
}

export async function saveInstance(id: string, wanted: SaveInstance): Promise<Image> {
  return dataOf(
    await api.POST('/api/v1/instances/{name}/save', { params: { path: { name: id } }, body: wanted }),
  )
}

const at = (id: string) => ({ params: { path: { image: id } } })

export async function changeImage(id: string, change: ChangeImage): Promise<Image> {
  return dataOf(await api.PATCH('/api/v1/images/{image}', { ...at(id), body: change }))
}

export async function deleteImage(id: string): Promise<Image> {
  return dataOf(await api.DELETE('/api/v1/images/{image}', at(id)))
}

/** Goes on with a save that failed. */
export async function retryImage(id: string): Promise<Image> {
  return dataOf(await api.POST('/api/v1/images/{image}/retry', at(id)))
}

/** How an image like it could be made from its parent. */
export function dockerfileQuery(id: string) {
  return queryOptions({
    queryKey: ['dockerfile', id],
    queryFn: async ({ signal }): Promise<Recipe> =>
      dataOf(await api.GET('/api/v1/images/{image}/dockerfile', { ...at(id), signal })),
  })
}

export function refetchImages(cache: QueryClient): Promise<void> {
  return readAgain(cache, { queryKey: imagesQuery.queryKey })
}

/** A saved image is known by its id; one of the platform never changes by an event. */
export function imageChanged(cache: QueryClient, image: Image) {
  const id = image.saved?.id
  const known = cache.getQueryData(imagesQuery.queryKey)?.some((other) => other.saved?.id === id)
  if (!known) return void refetchImages(cache)
  cache.setQueryData(imagesQuery.queryKey, (list) =>
    list?.map((other) => (other.saved?.id === id ? withUsers(image, other) : other)),
  )
  readAgainIfUnderWay(cache, { queryKey: imagesQuery.queryKey })
}

/** Events do not say who uses an image. */
function withUsers(image: Image, before: Image): Image {
  return image.saved ? { ...image, saved: { ...image.saved, used_by: before.saved?.used_by } } : image
}

export function imageDeleted(cache: QueryClient, id: string) {
  cache.setQueryData(imagesQuery.queryKey, (list) => list?.filter((image) => image.saved?.id !== id))
  readAgainIfUnderWay(cache, { queryKey: imagesQuery.queryKey })
}

/** Removes what no image needs any more, or only looks what that would be. */
export async function collectImages(dryRun: boolean): Promise<CollectedImages> {
  return dataOf(await api.POST('/api/v1/images/collect', { body: { dry_run: dryRun } }))
}
