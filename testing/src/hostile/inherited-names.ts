/** Names that every object inherits: keys of a table that a lookup without `Object.hasOwn`, or a Map, would find. */
export const inheritedNames: readonly string[] = [
  "__proto__",
  "constructor",
  "toString",
  "hasOwnProperty",
  "valueOf",
  "isPrototypeOf",
  "__defineGetter__",
  "toLocaleString",
];

/** Methods of HTTP that no path has, and invalid ones. */
export const unknownMethods: readonly string[] = ["TRACE", "PROPFIND", "get", "GETT", "undefined"];
