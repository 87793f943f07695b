/**
 * A way to find objects of a kind without looking at all of them: the key of an object in the index, such as the id of
 * its service; undefined for an object outside of the index. The function itself names the index. (Written as a method,
 * so that a kind of some objects is a kind of objects.)
 */
export type Index<R> = { key(object: R): string | undefined }["key"];
