"""Model predictive path integral control: torques as a weighted mean of sampled ones."""
