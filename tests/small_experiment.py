"""What makes the demo's experiment small: a step takes some hundredths of a second on a CPU."""

SMALL = """
model {{
  ssd {{
    image_resizer {{ fixed_shape_resizer {{ height: 64 width: 64 }} }}
    feature_extractor {{ depth_multiplier: 0.1 }}
  }}
}}
train_config {{ batch_size: 4 num_steps: {num_steps} }}
train_input_reader {{
  label_map_path: "{labels}"
  tf_record_input_reader {{ input_path: "{train}" }}
}}
eval_input_reader {{
  label_map_path: "{labels}" shuffle: false
  tf_record_input_reader {{ input_path: "{held_out}" }}
}}
"""
