export { createAuthorityFetch } from "./authority-fetch.ts";
export { createNodeClient, type NodeClientOptions, transportOptionsOf } from "./node-client.ts";
export {
  type Environment,
  type Profile,
  type Profiles,
  profilesFile,
  readProfiles,
  removeProfile,
  saveProfile,
  selectProfile,
  SettingsError,
} from "./profiles.ts";
export { type SettingsOptions, readSettings, type Settings } from "./settings.ts";
