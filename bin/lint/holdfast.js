// Rules of the lint that are ours.
import { noVoidCall } from "./no-void-call.js";
import { ownKeys } from "./own-keys.js";
import { comments, names } from "./words.js";

export default {
  meta: { name: "holdfast" },
  rules: { "no-void-call": noVoidCall, "own-keys": ownKeys, names, comments },
};
