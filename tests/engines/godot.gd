# SPDX-License-Identifier: GPL-3.0-or-later
# Godot plays an imported file: godot3-server --path PROJECT -s godot.gd, with the job as JSON in PROJECT/job.json:
# {"file": name in the project, "times": seconds}. PROJECT/played.json gets the matrix of each joint, row by row, and
# the weight of each shape key by name, at each time; and facts.
extends SceneTree


func _init():
	var job = read("res://job.json")
	var scene = load("res://" + job.file).instance()
	get_root().add_child(scene)
	var mesh = first(scene, "MeshInstance")
	var skeleton = mesh.get_node(mesh.skeleton)
	var player = first(scene, "AnimationPlayer")
	player.playback_process_mode = AnimationPlayer.ANIMATION_PROCESS_MANUAL
	player.play(player.get_animation_list()[0])
	var frames = []
	for time in job.times:
		player.seek(time, true)
		frames.append({"matrices": matrices(skeleton, mesh.skin), "shapes": shapes(mesh)})
	var facts = {"version": Engine.get_version_info().string, "bones": skeleton.get_bone_count(),
			"morphs": frames[0].shapes.size(), "clips": player.get_animation_list()}
	var file = File.new()
	file.open("res://played.json", File.WRITE)
	file.store_string(JSON.print({"frames": frames, "facts": facts}))
	file.close()
	quit()


func matrices(skeleton, skin):
	var numbers = []
	for bind in skin.get_bind_count():
		var bone = skin.get_bind_bone(bind)
		if bone < 0:
			bone = skeleton.find_bone(skin.get_bind_name(bind))
		var matrix = skeleton.global_transform * skeleton.get_bone_global_pose(bone) * skin.get_bind_pose(bind)
		for row in 3:
			for column in 3:
				numbers.append(matrix.basis[column][row])
			numbers.append(matrix.origin[row])
	return numbers


func shapes(mesh):
	var weights = {}
	for property in mesh.get_property_list():
		if property.name.begins_with("blend_shapes/"):
			weights[property.name.trim_prefix("blend_shapes/")] = mesh.get(property.name)
	return weights


func first(node, kind):
	if node.is_class(kind):
		return node
	for child in node.get_children():
		var found = first(child, kind)
		if found:
			return found
	return null


func read(path):
	var file = File.new()
	file.open(path, File.READ)
	return JSON.parse(file.get_as_text()).result
