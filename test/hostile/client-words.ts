/** Names that every object inherits: keys of a table that a look-up without `Object.hasOwn`, or a Map, would find. */
export const clientWords: readonly string[] = [
  "__proto__",
  "constructor",
  "toString",
  "hasOwnProperty",
  "valueOf",
  "isPrototypeOf",
  "__defineGetter__",
  "toLocaleString",
];

/** Methods of HTTP that no path has, and words that are none. */
export const unknownMethods: readonly string[] = ["TRACE", "PROPFIND", "get", "GETT", "undefined"];
