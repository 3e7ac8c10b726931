package luascripts

// Schema is the version of the stored form that the scripts write: SCHEMA in form.lua.
const Schema = 1
