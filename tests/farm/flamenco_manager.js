// SPDX-License-Identifier: GPL-3.0-or-later
// What Flamenco's Manager does with a job type, as far as a job type sees it: node flamenco_manager.js SCRIPT SETTINGS
// prints the settings that it offers and the tasks of a job with the given ones (JSON).

const fs = require("fs");
const path = require("path");
const vm = require("vm");

class Task {
    constructor(name, type) {
        if (!name.trim() || !type.trim()) {
            throw new Error("author.Task(name, type): both are required");
        }
        Object.assign(this, { name: name.trim(), type: type.trim(), commands: [], dependencies: [] });
    }
    addCommand(command) { this.commands.push(command); }
    addDependency(task) { this.dependencies.push(task); }
}

const [script, settingsText] = process.argv.slice(2);
const context = vm.createContext({
    author: {
        Task: (name, type) => new Task(name, type),
        Command: (name, parameters) => ({ name, parameters }),
    },
    path: {
        basename: path.posix.basename,
        dirname: path.posix.dirname,
        join: path.posix.join,
        stem: (name) => path.posix.parse(name).name,
    },
    print: () => {},
    alert: () => {},
});
vm.runInContext(fs.readFileSync(script, "utf8"), context, { filename: script });

const jobType = vm.runInContext("JOB_TYPE", context);
const defaults = Object.fromEntries(
    jobType.settings.filter((setting) => "default" in setting).map((setting) => [setting.key, setting.default]));
const tasks = [];
const job = { settings: { ...defaults, ...JSON.parse(settingsText) }, addTask: (task) => tasks.push(task) };
vm.runInContext("compileJob", context)(job);
console.log(JSON.stringify({
    jobType,
    tasks: tasks.map((task) => ({ ...task, dependencies: task.dependencies.map((other) => other.name) })),
}));
