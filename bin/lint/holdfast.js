// Rules of the lint that are ours.
import { noVoidCall } from "./no-void-call.js";
import { ownKeys } from "./own-keys.js";

export default { meta: { name: "holdfast" }, rules: { "no-void-call": noVoidCall, "own-keys": ownKeys } };
