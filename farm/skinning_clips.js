// SPDX-License-Identifier: GPL-3.0-or-later
// One character, many clips, on Blender's own farm: a job type of Flamenco (3.5 or newer).
//
// Put this file into the folder `scripts` beside flamenco-manager, and choose "Skinning: Solve Clips" in the add-on.
// All workers must be able to reach the folders. More: docs/command_line.md.

const JOB_TYPE = {
    label: "Skinning: Solve Clips",
    description: "Turn a few clips of a mesh into bones and weights, then solve for the motion of these bones in many clips, one task for each, and gather the reports into one table",
    settings: [
        { key: "character", type: "string", subtype: "file_path", required: true, visible: "submission",
          eval: "bpy.data.filepath",
          evalInfo: { description: "Open file" },
          description: "The .blend file with the mesh that all clips are of" },
        { key: "object", type: "string", required: true,
          eval: "C.object.name if C.object else ''",
          evalInfo: { description: "Active object" },
          description: "The mesh object of the character. The result is called after it" },
        { key: "solve_folder", type: "string", subtype: "dir_path", required: true,
          description: "Folder of the caches that bones and weights are solved from, such as a range of motion" },
        { key: "clip_folder", type: "string", subtype: "dir_path", required: true,
          description: "Folder of all caches, each a clip" },
        { key: "clips", type: "string", required: true,
          eval: "'|'.join(sorted(path.name for path in abspath(settings.clip_folder).iterdir() if path.suffix.lower() in ('.abc', '.usd', '.usda', '.usdc', '.usdz', '.pc2', '.mdd')))",
          evalInfo: { showLinkButton: true, description: "All caches of the folder" },
          description: "Names of the caches to solve for, separated by |" },
        { key: "output_folder", type: "string", subtype: "dir_path", required: true,
          description: "Folder for results, reports, logs of failed clips, and table.csv. The solved character goes into its folder character" },
        { key: "on_failure", type: "string", choices: ["report", "fail"], default: "report",
          description: "report: a failed clip does not fail its task; the table lists it, and the last task fails. fail: its task fails, and Flamenco tries it again on other workers" },

        { key: "bones", type: "int32", default: 20, propargs: { min: 1 }, description: "Number of bones" },
        { key: "kind", type: "string", choices: ["AFFINE", "SCALED", "RIGID"], default: "AFFINE",
          description: "What the bones may do" },
        { key: "influences", type: "int32", default: 4, propargs: { min: 1 },
          description: "Most bones that may move one vertex" },
        { key: "iterations", type: "int32", default: 15, propargs: { min: 1 }, description: "Rounds of improvement" },
        { key: "more_settings", type: "string", default: "",
          description: "More options of convert as on the command line, such as --residual-shapes 4 --smoothness 0.2" },
    ],
};

function compileJob(job) {
    const settings = job.settings;
    const clips = clipNames(settings.clips);
    const solved = path.join(settings.output_folder, "character");

    const solve = author.Task(`solve ${path.stem(settings.character)}`, "blender");
    solve.addCommand(skinning("convert-shots", [
        settings.character,
        "--clips", settings.solve_folder,
        "--output", solved,
        `--object=${settings.object}`,
        ...conversion(settings),
    ]));
    job.addTask(solve);

    const gather = author.Task("gather reports", "blender");
    clips.forEach((name) => {
        const task = author.Task(`apply ${path.stem(name)}`, "blender");
        task.addCommand(skinning("convert-shots", [
            path.join(settings.clip_folder, name),
            "--character", solved,
            "--output", settings.output_folder,
            `--on-failure=${settings.on_failure}`,
            `--object=${settings.object}_skinned`,
            ...conversion(settings),
        ]));
        task.addDependency(solve);
        job.addTask(task);
        gather.addDependency(task);
    });

    gather.addCommand(skinning("gather-reports", [
        settings.output_folder,
        ...clips.flatMap((name) => ["--shots", path.join(settings.clip_folder, name)]),
        "--clips",
        "--output", path.join(settings.output_folder, "table.csv"),
    ]));
    job.addTask(gather);
}

// The names without empty and repeated ones: two tasks must not write the same file.
function clipNames(text) {
    const names = text.split("|").map((name) => name.trim()).filter((name) => name !== "");
    if (names.length === 0) {
        throw "There are no clips: the setting \"clips\" is empty";
    }
    return [...new Set(names)];
}

function conversion(settings) {
    return [
        `--bones=${settings.bones}`,
        `--kind=${settings.kind}`,
        `--influences=${settings.influences}`,
        `--iterations=${settings.iterations}`,
        `--settings=${settings.more_settings || ""}`,
    ];
}

// The files come after --command: before it, a file that Blender cannot read would end Blender without a report.
function skinning(command, commandArguments) {
    return author.Command("blender-render", {
        exe: "{blender}",
        exeArgs: "{blenderArgs}",
        argsBefore: [],
        blendfile: "",
        args: ["--command", "skinning", command, ...commandArguments],
    });
}
