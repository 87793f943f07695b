/** Ids of apps and of files services. */
export interface OwnersByKind {
  readonly apps: readonly string[];
  readonly files: readonly string[];
}

/** Path of the page of an owner of machines; that of a database service unless the id is of another kind. */
export function ownerPath(id: string, owners: OwnersByKind | undefined): readonly [page: string, id: string] {
  if (owners?.apps.includes(id) === true) return ["apps", id];
  return [owners?.files.includes(id) === true ? "files" : "services", id];
}
